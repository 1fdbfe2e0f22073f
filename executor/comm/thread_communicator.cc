#include "executor/comm/thread_communicator.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "executor/comm/message_communicator.h"

namespace ff {
namespace {

/// One side of a message. Owned by the ticket and, until it is matched, by the mailbox.
struct Side {
  int owner = 0;
  int peer = 0;
  Channel channel;
  bool sends = false;
  const void* from = nullptr;
  void* to = nullptr;
  int64_t bytes = 0;
  bool done = false;
  std::string error;
};
using SidePtr = std::shared_ptr<Side>;

/// What the threads share: mailboxes, and who waits. Everything in it is under the one mutex.
class Post {
 public:
  explicit Post(int size) : ranks_(static_cast<size_t>(size)) {}

  void match(const SidePtr& side);
  bool done(const Side& side);
  int64_t events(int rank);
  void idle(int rank, int64_t since);
  void fail(int rank, const std::string& message);
  void finish(int rank);
  int context_of(const std::vector<int>& ranks);
  /// The rank that failed first, or -1, and its message.
  std::pair<int, std::string> failure();

 private:
  struct Rank {
    std::condition_variable changed;
    int64_t events = 0;
    bool waits = false;
    bool finished = false;
  };
  using Key = std::tuple<int, int, int, int>;  // context, tag, sender, receiver

  void check_alive() const {
    if (failed_rank_ >= 0) {
      throw RunError("rank " + std::to_string(failed_rank_) + " failed: " + message_);
    }
  }
  void notify(int rank);
  void fail_locked(int rank, const std::string& message);
  /// Fails the world if every rank has ended or waits for what nobody will do.
  void check_deadlock(int rank);

  std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::map<Key, std::deque<SidePtr>> mailboxes_;  // sides without the other one: all sends or all receives
  std::map<std::vector<int>, int> contexts_;
  int failed_rank_ = -1;
  std::string message_;
};

std::string describe(const Side& side) {
  return "rank " + std::to_string(side.owner) + (side.sends ? " sends " : " awaits ") +
         std::to_string(side.bytes) + " bytes " + (side.sends ? "to" : "from") + " rank " +
         std::to_string(side.peer) + (side.channel.context == 0 ? " with tag " : " in collective ") +
         std::to_string(side.channel.tag);
}

void deliver(Side& send, Side& receive) {
  if (send.bytes != receive.bytes) {
    receive.error = describe(receive) + ", but " + describe(send);
  } else if (send.bytes > 0) {
    std::memmove(receive.to, send.from, static_cast<size_t>(send.bytes));
  }
  send.done = receive.done = true;
}

void Post::match(const SidePtr& side) {
  const std::lock_guard lock(mutex_);
  check_alive();
  const Key key(side->channel.context, side->channel.tag, side->sends ? side->owner : side->peer,
                side->sends ? side->peer : side->owner);
  std::deque<SidePtr>& box = mailboxes_[key];
  if (box.empty() || box.front()->sends == side->sends) {
    box.push_back(side);
    return;
  }
  const SidePtr other = box.front();
  box.pop_front();
  if (box.empty()) mailboxes_.erase(key);
  deliver(side->sends ? *side : *other, side->sends ? *other : *side);
  notify(side->owner);
  notify(side->peer);
}

bool Post::done(const Side& side) {
  const std::lock_guard lock(mutex_);
  check_alive();
  if (!side.error.empty()) throw RunError(side.error);
  return side.done;
}

int64_t Post::events(int rank) {
  const std::lock_guard lock(mutex_);
  return ranks_[static_cast<size_t>(rank)].events;
}

void Post::notify(int rank) {
  Rank& r = ranks_[static_cast<size_t>(rank)];
  ++r.events;
  r.waits = false;  // here and not when it wakes: until then it would look as if it waited in vain
  r.changed.notify_one();
}

void Post::idle(int rank, int64_t since) {
  std::unique_lock lock(mutex_);
  check_alive();
  Rank& r = ranks_[static_cast<size_t>(rank)];
  if (r.events != since) return;
  r.waits = true;
  check_deadlock(rank);
  r.changed.wait(lock, [&] { return r.events != since; });
  check_alive();
}

void Post::check_deadlock(int rank) {
  for (const Rank& r : ranks_) {
    if (!r.waits && !r.finished) return;
  }
  std::string message = "every rank waits for another, or has ended:";
  for (const auto& [key, box] : mailboxes_) {
    for (const SidePtr& side : box) {
      if (message.size() < 2000) message += " " + describe(*side) + ";";
    }
  }
  bool anybody = false;
  for (const Rank& r : ranks_) anybody = anybody || r.waits;
  if (anybody) fail_locked(rank, message);
}

void Post::fail_locked(int rank, const std::string& message) {
  if (failed_rank_ >= 0) return;
  failed_rank_ = rank;
  message_ = message;
  for (size_t r = 0; r < ranks_.size(); ++r) notify(static_cast<int>(r));
}

void Post::fail(int rank, const std::string& message) {
  const std::lock_guard lock(mutex_);
  fail_locked(rank, message);
}

void Post::finish(int rank) {
  const std::lock_guard lock(mutex_);
  ranks_[static_cast<size_t>(rank)].finished = true;
  check_deadlock(rank);
}

int Post::context_of(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  check_alive();
  return contexts_.emplace(ranks, static_cast<int>(contexts_.size()) + 1).first->second;
}

std::pair<int, std::string> Post::failure() {
  const std::lock_guard lock(mutex_);
  return {failed_rank_, message_};
}

class ThreadTransport : public Transport {
 public:
  ThreadTransport(Post& post, int rank, uint64_t yield_seed)
      : post_(post),
        rank_(rank),
        yields_(yield_seed != 0),
        rng_(yield_seed * 1000003 + static_cast<uint64_t>(rank)) {}

  Ticket send(Channel channel, const void* data, int64_t bytes, int peer) override {
    auto side = std::make_shared<Side>(
        Side{rank_, rank_of(channel, peer), channel, true, data, nullptr, bytes, false, {}});
    return file(std::move(side));
  }
  Ticket receive(Channel channel, void* data, int64_t bytes, int peer) override {
    auto side = std::make_shared<Side>(
        Side{rank_, rank_of(channel, peer), channel, false, nullptr, data, bytes, false, {}});
    return file(std::move(side));
  }
  bool done(Ticket ticket) override {
    yield_at_random();
    const auto found = sides_.find(ticket);
    if (!post_.done(*found->second)) return false;
    sides_.erase(found);
    return true;
  }
  void poke() override { yield_at_random(); }
  int64_t events() override { return post_.events(rank_); }
  void idle(int64_t since) override { post_.idle(rank_, since); }
  int open_context(const std::vector<int>& ranks) override {
    const int context = post_.context_of(ranks);
    members_[context] = ranks;
    return context;
  }
  int max_tag() const override { return Communicator::kMaxTag; }

 private:
  int rank_of(Channel channel, int peer) const {
    return channel.context == 0 ? peer : members_.at(channel.context)[static_cast<size_t>(peer)];
  }
  Ticket file(SidePtr side) {
    yield_at_random();
    post_.match(side);
    sides_.emplace(next_, std::move(side));
    return next_++;
  }
  void yield_at_random() {
    if (!yields_) return;
    const int64_t draw = rng_.below(16);
    if (draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng_.below(50)));
    if (draw < 8) std::this_thread::yield();
  }

  Post& post_;
  int rank_;
  bool yields_;
  Rng rng_;
  std::unordered_map<Ticket, SidePtr> sides_;
  std::map<int, std::vector<int>> members_;
  Ticket next_ = 0;
};

/// A base that is made before the communicator, which needs it.
struct TransportHolder {
  ThreadTransport transport;
};

class ThreadCommunicator : private TransportHolder, public MessageCommunicator {
 public:
  ThreadCommunicator(Post& post, int rank, int size, const ThreadWorldOptions& options)
      : TransportHolder{{post, rank, options.yield_seed}},
        MessageCommunicator(rank, size, transport, options.messages),
        post_(post) {}
  [[noreturn]] void abort(int /*status*/, const std::string& message) override {
    post_.fail(rank(), message);
    throw RunError(message);
  }

 private:
  Post& post_;
};

/// Throws an error of the kind of the rank's own, which has none if it ended while another waited for it.
[[noreturn]] void throw_failure(int rank, const std::string& message, const std::exception_ptr& error) {
  const std::string text = "rank " + std::to_string(rank) + ": " + message;
  try {
    if (error) std::rethrow_exception(error);
  } catch (const UserError& e) {
    throw UserError(text, e.hint());
  } catch (const InternalError&) {
    throw InternalError(text);
  } catch (...) {  // RunError, and what the standard library throws
  }
  throw RunError(text);
}

}  // namespace

struct ThreadWorld::Impl {
  explicit Impl(int size) : post(size) {}
  Post post;
  std::vector<std::unique_ptr<ThreadCommunicator>> ranks;
};

ThreadWorld::ThreadWorld(int size, const ThreadWorldOptions& options) {
  FF_CHECK_GT(size, 0);
  impl_ = std::make_unique<Impl>(size);
  for (int r = 0; r < size; ++r) {
    impl_->ranks.push_back(std::make_unique<ThreadCommunicator>(impl_->post, r, size, options));
  }
}

ThreadWorld::~ThreadWorld() = default;

Communicator& ThreadWorld::rank(int rank) { return *impl_->ranks.at(static_cast<size_t>(rank)); }
void ThreadWorld::fail(int rank, const std::string& message) { impl_->post.fail(rank, message); }
void ThreadWorld::finish(int rank) { impl_->post.finish(rank); }

std::pair<int, std::string> ThreadWorld::failure() const { return impl_->post.failure(); }

void run_threads(int size, const std::function<void(Communicator&)>& body,
                 const ThreadWorldOptions& options) {
  ThreadWorld world(size, options);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  const auto run = [&](int rank) {
    std::string message;
    try {
      body(world.rank(rank));
      return world.finish(rank);
    } catch (const std::exception& e) {
      errors[static_cast<size_t>(rank)] = std::current_exception();
      message = e.what();
    } catch (...) {
      message = "an exception of unknown type";
    }
    world.fail(rank, message);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&run, r] { run(r); });
  }
  for (std::thread& thread : threads) thread.join();
  const auto [rank, message] = world.failure();
  if (rank >= 0) throw_failure(rank, message, errors[static_cast<size_t>(rank)]);
}

}  // namespace ff
