// Requests between keepers over Unix sockets: a connection for each request, of processes of one user.
#pragma once

#include <atomic>
#include <thread>

#include "checkpoint/peers/peer_group.h"

namespace quern::checkpoint {

/// Asks over the sockets of all members, in their order. A member that is not there, or does not answer whole within
/// `seconds`, is io_error.
class UnixPeers final : public PeerTransport {
 public:
  UnixPeers(Vector<String> sockets, double seconds) : sockets_(std::move(sockets)), seconds_(seconds) {}
  Result<Vector<std::uint8_t>> ask(std::uint32_t member, std::span<const std::uint8_t> request) override;

 private:
  const Vector<String> sockets_;
  const double seconds_;
};

/// Answers for a member in a thread of its own, one request after the other, until it dies. Whoever connects and says
/// nothing is let go after a second, who takes no answer after `seconds`; other users are refused.
class UnixPeerServer {
 public:
  /// Makes the socket; one that nobody answers on any more is replaced. `member` lives as long as this.
  static Result<std::unique_ptr<UnixPeerServer>> start(const String& socket, PeerMember& member, double seconds,
                                                       Report& report);
  ~UnixPeerServer();
  UnixPeerServer(const UnixPeerServer&) = delete;
  UnixPeerServer& operator=(const UnixPeerServer&) = delete;

 private:
  UnixPeerServer(String path, int listening, PeerMember& member, double seconds);
  void run();

  const String path_;
  const int listening_;
  PeerMember& member_;
  const double seconds_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace quern::checkpoint
