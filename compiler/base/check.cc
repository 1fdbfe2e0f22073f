#include "compiler/base/check.h"

#include <cstdio>
#include <new>

namespace ff {
namespace internal {

CheckFailure::~CheckFailure() noexcept(false) { throw InternalError(stream_.str()); }

}  // namespace internal

int describe_current_exception(const char* program, std::string& message) {
  const std::string prefix = std::string(program) + ": ";
  try {
    throw;
  } catch (const UserError& e) {
    message = prefix + "error: " + e.what() + "\n";
    if (!e.hint().empty()) message += "hint: " + e.hint() + "\n";
    return 2;
  } catch (const RunError& e) {
    message = prefix + "failed: " + e.what() + "\n";
    return 3;
  } catch (const std::bad_alloc&) {
    message = prefix + "failed: out of memory\n";
    return 3;
  } catch (const std::exception& e) {
    message = prefix + "bug: " + e.what() + "\nPlease report it with the command line above.\n";
    return 1;
  }
}

int report_errors(const char* program, int (*body)(int, char**), int argc, char** argv) {
  try {
    return body(argc, argv);
  } catch (...) {
    std::string message;
    const int status = describe_current_exception(program, message);
    std::fputs(message.c_str(), stderr);
    return status;
  }
}

}  // namespace ff
