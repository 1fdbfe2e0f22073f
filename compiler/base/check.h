// Errors, in three kinds, each with its exit status:
//   UserError     the input is at fault (2): says the file, node or option, and how to mend it;
//   RunError      something outside failed during the run (3): a peer lost, disk, memory;
//   InternalError a bug (1): a check that prints its operands.
//
//   FF_CHECK_EQ(box.rank(), shape.size()) << "tensor " << name;
//   throw UserError("model.onnx: node 'conv1' (Conv): group=3 does not divide 64 output channels", "set
//   group=4");
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace ff {

/// The user's input is at fault. `what()` is the message; `hint()` one thing to do about it, or empty.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message, std::string hint = {})
      : std::runtime_error(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// Something outside failed while running: a peer lost, a disk full, memory exhausted.
class RunError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A broken invariant: a bug of this program.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

/// Runs `body` and turns what it throws into a message on stderr ("ffcompile: error: ...", "hint: ...")
/// and the exit status: 0 done, 1 a bug, 2 the user's input, 3 something outside.
int report_errors(const char* program, int (*body)(int, char**), int argc, char** argv);

/// The message and exit status of the exception that is being handled; for callers that must do more before
/// they end.
int describe_current_exception(const char* program, std::string& message);

namespace internal {

/// Collects what is streamed into a failed check and throws InternalError with it.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    stream_ << file << ":" << line << ": check failed: " << condition;
  }
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure() noexcept(false);
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace internal
}  // namespace ff

#define FF_CHECK(condition)                 \
  (condition) ? static_cast<void>(0)        \
              : ::ff::internal::Voidify() & \
                    ::ff::internal::CheckFailure(__FILE__, __LINE__, #condition).stream() << " "
#define FF_CHECK_OP(a, b, op)                                                                   \
  ((a)op(b)) ? static_cast<void>(0)                                                             \
             : ::ff::internal::Voidify() &                                                      \
                   ::ff::internal::CheckFailure(__FILE__, __LINE__, #a " " #op " " #b).stream() \
                       << " (" << (a) << " against " << (b) << ") "
#define FF_CHECK_EQ(a, b) FF_CHECK_OP(a, b, ==)
#define FF_CHECK_NE(a, b) FF_CHECK_OP(a, b, !=)
#define FF_CHECK_LT(a, b) FF_CHECK_OP(a, b, <)
#define FF_CHECK_LE(a, b) FF_CHECK_OP(a, b, <=)
#define FF_CHECK_GT(a, b) FF_CHECK_OP(a, b, >)
#define FF_CHECK_GE(a, b) FF_CHECK_OP(a, b, >=)
