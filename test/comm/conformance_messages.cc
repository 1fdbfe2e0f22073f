#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "test/comm/conformance.h"
#include "test/comm/conformance_data.h"

namespace ff {
namespace {

/// Bytes that tell which message they are of.
std::vector<uint8_t> pattern(int64_t bytes, uint64_t message) {
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(counter_random(7, message, i));
  return data;
}

uint64_t message_id(int from, int to, int tag) {
  return static_cast<uint64_t>(from) * 1000003 + static_cast<uint64_t>(to) * 1009 +
         static_cast<uint64_t>(tag) * 7919;
}

void ring_of_all_sizes(Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  int tag = 0;
  for (const int64_t bytes : {0, 1, 7, 4096, 100001, 3000000}) {
    ++tag;
    const auto sent = pattern(bytes, message_id(comm.rank(), next, tag));
    std::vector<uint8_t> got(static_cast<size_t>(bytes), 0xEE);
    std::vector<Request> requests{comm.isend(sent.data(), bytes, next, tag),
                                  comm.irecv(got.data(), bytes, previous, tag)};
    wait_all(comm, requests);
    FF_CHECK(got == pattern(bytes, message_id(previous, comm.rank(), tag))) << bytes << " bytes";
  }
}

void messages_that_cross(Communicator& comm) {
  // Everybody sends to everybody first and receives afterwards: a send that blocked would never end.
  constexpr int64_t kBytes = 200000;
  std::vector<Request> requests;
  std::vector<std::vector<uint8_t>> sent, got(static_cast<size_t>(comm.size()), std::vector<uint8_t>(kBytes));
  for (int peer = 0; peer < comm.size(); ++peer)
    sent.push_back(pattern(kBytes, message_id(comm.rank(), peer, 3)));
  for (int peer = 0; peer < comm.size(); ++peer) {
    requests.push_back(comm.isend(sent[static_cast<size_t>(peer)].data(), kBytes, peer, 3));
  }
  for (int peer = 0; peer < comm.size(); ++peer) {
    requests.push_back(comm.irecv(got[static_cast<size_t>(peer)].data(), kBytes, peer, 3));
  }
  wait_all(comm, requests);
  for (int peer = 0; peer < comm.size(); ++peer) {
    FF_CHECK(got[static_cast<size_t>(peer)] == pattern(kBytes, message_id(peer, comm.rank(), 3)))
        << "from " << peer;
  }
}

void tags_out_of_order(Communicator& comm) {
  // The receiver asks in the opposite order; equal tags keep their order. The largest tag is one of them.
  const Ranks tags{5, Communicator::kMaxTag, 0, 5, 77};
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<int> sent, got(tags.size(), -1);
  std::vector<Request> requests;
  for (size_t i = 0; i < tags.size(); ++i) sent.push_back(comm.rank() * 100 + static_cast<int>(i));
  for (size_t i = 0; i < tags.size(); ++i) requests.push_back(comm.isend(&sent[i], 4, next, tags[i]));
  const std::vector<size_t> order{4, 2, 1, 0, 3};
  for (size_t i : order) requests.push_back(comm.irecv(&got[i], 4, previous, tags[i]));
  wait_all(comm, requests);
  for (size_t i = 0; i < tags.size(); ++i) FF_CHECK_EQ(got[i], previous * 100 + static_cast<int>(i));
}

void tag_above_the_bound(Communicator& comm) {
  bool refused = false;
  try {
    (void)comm.isend(nullptr, 0, comm.rank(), std::numeric_limits<int>::max());
  } catch (const RunError& e) {
    refused = std::string(e.what()).find("tag 2147483647") != std::string::npos;
  }
  FF_CHECK(refused);
}

void wrong_size_names_the_sender(Communicator& comm) {
  if (comm.size() == 1) return;  // not promised for messages to oneself
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (const int64_t expected : {4, 16}) {
    const std::vector<uint8_t> sent(8);
    std::vector<uint8_t> got(16);
    Request receive = comm.irecv(got.data(), expected, previous, 9);
    Request send = comm.isend(sent.data(), 8, next, 9);
    std::string message;
    try {
      comm.wait(receive);
    } catch (const RunError& e) {
      message = e.what();
    }
    FF_CHECK(message.find("from rank " + std::to_string(previous)) != std::string::npos) << message;
    comm.wait(send);
  }
}

void message_to_oneself(Communicator& comm) {
  for (const int64_t bytes : {0, 5, 500000}) {
    const auto sent = pattern(bytes, 1);
    std::vector<uint8_t> got(static_cast<size_t>(bytes));
    std::vector<Request> requests{comm.isend(sent.data(), bytes, comm.rank(), 1),
                                  comm.irecv(got.data(), bytes, comm.rank(), 1)};
    wait_all(comm, requests);
    FF_CHECK(got == sent);
  }
}

void many_outstanding_requests(Communicator& comm) {
  constexpr int kMessages = 300;
  std::vector<Request> requests;
  std::vector<int> sent(static_cast<size_t>(comm.size() * kMessages)), got(sent.size(), -1);
  for (int peer = 0; peer < comm.size(); ++peer) {
    for (int m = 0; m < kMessages; ++m) {
      const auto i = static_cast<size_t>(peer * kMessages + m);
      sent[i] = comm.rank() * kMessages + m;
      requests.push_back(comm.irecv(&got[i], 4, peer, m));
      requests.push_back(comm.isend(&sent[i], 4, peer, m));
    }
  }
  std::reverse(requests.begin(), requests.end());
  wait_all(comm, requests);
  for (size_t i = 0; i < got.size(); ++i) FF_CHECK_EQ(got[i], static_cast<int>(i));
}

void barrier_holds_everybody(Communicator& comm) {
  // A message sent before the barrier and received after it: done is the receive, whoever came first.
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (int i = 0; i < 20; ++i) {
    int got = -1;
    Request receive = comm.irecv(&got, 4, previous, i);
    const int word = comm.rank() * 100 + i;
    Request send = comm.isend(&word, 4, next, i);
    comm.wait(send);
    comm.barrier();
    comm.wait(receive);
    FF_CHECK_EQ(got, previous * 100 + i);
  }
}

constexpr ConformanceCase kCases[] = {
    {"a ring passes messages of all sizes", ring_of_all_sizes},
    {"messages may cross", messages_that_cross},
    {"tags match out of order and equal ones keep their order", tags_out_of_order},
    {"a tag above the bound is refused", tag_above_the_bound},
    {"a message of another size is an error that names its sender", wrong_size_names_the_sender},
    {"a rank may send to itself", message_to_oneself},
    {"many requests may be outstanding", many_outstanding_requests},
    {"barriers and messages mix", barrier_holds_everybody},
};

}  // namespace

std::span<const ConformanceCase> message_cases() { return kCases; }

}  // namespace ff
