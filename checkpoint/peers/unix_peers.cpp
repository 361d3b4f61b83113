#include "checkpoint/peers/unix_peers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace quern::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLookMs = 100;  // between checks whether the server is to end
constexpr int kWaiting = 64;
constexpr double kRequestSeconds = 1;  // in which a request must come: it is short, and others wait behind it

/// A descriptor and the moment by which all is to be done with it.
class Connection {
 public:
  Connection(int descriptor, double seconds) : descriptor_(descriptor) { limit(seconds); }
  ~Connection() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int descriptor() const { return descriptor_; }
  /// From now on.
  void limit(double seconds) {
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  bool send_all(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
      if (count <= 0 && !goes_on(POLLOUT)) return false;
    }
    return true;
  }
  bool receive_all(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
      if (count == 0) return false;
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
      if (count < 0 && !goes_on(POLLIN)) return false;
    }
    return true;
  }
  /// A length of four bytes, and as many bytes.
  bool send_message(std::span<const std::uint8_t> bytes) {
    std::array<std::uint8_t, 4> length{};
    for (std::size_t i = 0; i < 4; ++i) length[i] = static_cast<std::uint8_t>(bytes.size() >> (8 * i));
    return send_all(length) && send_all(bytes);
  }
  bool receive_message(std::size_t most, Vector<std::uint8_t>& out) {
    std::array<std::uint8_t, 4> length{};
    if (!receive_all(length)) return false;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < 4; ++i) bytes |= std::size_t{length[i]} << (8 * i);
    if (bytes > most) return false;
    out.resize(bytes);
    return receive_all(out);
  }

 private:
  /// After a call that moved nothing: whether it may be made again, which this waits for.
  bool goes_on(short event) const {
    if (errno == EINTR) return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{descriptor_, event, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 3'600'000)));
    return ready > 0 || (ready < 0 && errno == EINTR);
  }

  const int descriptor_;
  Clock::time_point end_;
};

std::optional<sockaddr_un> address_of(const String& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(out.sun_path)) return {};
  std::memcpy(out.sun_path, path.data(), path.size());
  return out;
}

int new_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// A Unix socket connects at once or not at all.
bool connects(int descriptor, const sockaddr_un& address) {
  return ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool is_of_this_user(int descriptor) {
  ucred who{};
  socklen_t size = sizeof(who);
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

Status silent() { return Status(StatusCode::io_error, "the peer does not answer"); }

}  // namespace

Result<Vector<std::uint8_t>> UnixPeers::ask(std::uint32_t member, std::span<const std::uint8_t> request) {
  if (member >= sockets_.size()) return silent();
  const auto address = address_of(sockets_[member]);
  Connection connection(new_socket(), seconds_);
  if (!address || connection.descriptor() < 0 || !connects(connection.descriptor(), *address) ||
      !is_of_this_user(connection.descriptor()))
    return silent();
  Vector<std::uint8_t> answer;
  if (!connection.send_message(request) || !connection.receive_message(kMaxPeerAnswer, answer)) return silent();
  return answer;
}

Result<std::unique_ptr<UnixPeerServer>> UnixPeerServer::start(const String& path, PeerMember& member, double seconds,
                                                              Report& report) {
  const auto address = address_of(path);
  if (!address)
    return fail(report, StatusCode::invalid_argument,
                join({path, ": a socket's path has 1 to ", decimal(sizeof(sockaddr_un::sun_path) - 1), " bytes"}));
  const auto failed = [&](const char* what, int error) -> Status {
    return fail_file(report, path, what, Status(StatusCode::io_error, "the system refused (errno {0})", error));
  };
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    const Connection probe(new_socket(), seconds);
    if (!S_ISSOCK(info.st_mode) || connects(probe.descriptor(), *address) || errno != ECONNREFUSED)
      return fail(
          report, StatusCode::io_error,
          join({path, ": is there, and is not a socket that a dead keeper left; give another path, or end its owner"}));
    if (unlink(path.c_str()) != 0) return failed("remove it", errno);
  }
  const int listening = new_socket();
  if (listening < 0) return failed("make the socket", errno);
  if (bind(listening, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(listening, kWaiting) != 0) {
    const int error = errno;
    close(listening);
    return failed("listen on it", error);
  }
  return std::unique_ptr<UnixPeerServer>(new UnixPeerServer(path, listening, member, seconds));
}

UnixPeerServer::UnixPeerServer(String path, int listening, PeerMember& member, double seconds)
    : path_(std::move(path)), listening_(listening), member_(member), seconds_(seconds), thread_([this] { run(); }) {}

UnixPeerServer::~UnixPeerServer() {
  over_ = true;
  thread_.join();
  close(listening_);
  unlink(path_.c_str());
}

void UnixPeerServer::run() {
  while (!over_) {
    pollfd waiting{listening_, POLLIN, 0};
    if (poll(&waiting, 1, kLookMs) <= 0) continue;
    Connection connection(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK),
                          std::min(seconds_, kRequestSeconds));
    // Where there are no descriptors left, the connection goes on waiting, and poll() returns at once.
    if (connection.descriptor() < 0) std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    if (connection.descriptor() < 0 || !is_of_this_user(connection.descriptor())) continue;
    try {
      Vector<std::uint8_t> request;
      if (!connection.receive_message(kMaxPeerRequest, request)) continue;
      const Vector<std::uint8_t> answer = member_.answer(request);
      connection.limit(seconds_);
      connection.send_message(answer);
    } catch (const std::bad_alloc&) {
      // The other asks again.
    }
  }
}

}  // namespace quern::checkpoint
