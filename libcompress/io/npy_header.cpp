// A small parser for the one Python dictionary that .npy headers hold, with every length bounded.
#include "libcompress/io/npy_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "libcompress/io/error.h"

namespace quern::io {
namespace {

constexpr std::array<std::uint8_t, 6> kMagic{0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::size_t kAlignment = 64;

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string& what) : text_(text), what_(what) {}

  Result<NpyHeader> parse() {
    QUERN_RETURN_IF_ERROR(expect('{'));
    while (!accept('}')) {
      QUERN_RETURN_IF_ERROR(entry());
      if (accept(',')) continue;
      QUERN_RETURN_IF_ERROR(expect('}'));
      break;
    }
    skip_space();
    if (at_ != text_.size()) return bad("goes on after its dictionary");
    if (!has_descr_ || !has_order_ || !has_shape_) return bad("lacks one of descr, fortran_order and shape");
    return std::move(header_);
  }

 private:
  Status bad(std::string problem) { return fail(what_, StatusCode::corrupt, "its header " + std::move(problem)); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status expect(char c) {
    if (accept(c)) return {};
    return bad("lacks '" + std::string(1, c) + "' at byte " + std::to_string(at_));
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<std::string_view> quoted() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      return bad("lacks a quoted text at byte " + std::to_string(at_));
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return bad("has a text without end");
    const std::string_view inside = text_.substr(at_, end - at_);
    if (inside.find('\\') != std::string_view::npos) return bad("has an escape in a text");
    at_ = end + 1;
    return inside;
  }

  Status entry() {
    QUERN_ASSIGN_OR_RETURN(const std::string_view key, quoted());
    QUERN_RETURN_IF_ERROR(expect(':'));
    bool* seen = key == "descr"           ? &has_descr_
                 : key == "fortran_order" ? &has_order_
                 : key == "shape"         ? &has_shape_
                                          : nullptr;
    if (seen == nullptr) return bad("has an unknown key");
    if (std::exchange(*seen, true)) return bad("has the key " + std::string(key) + " twice");
    if (seen == &has_descr_) return descr();
    if (seen == &has_order_) return order();
    return shape();
  }

  Status descr() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      return fail(what_, StatusCode::unsupported,
                  "it holds records of several fields; save one field (a['name']) as an array of its own");
    QUERN_ASSIGN_OR_RETURN(const std::string_view inside, quoted());
    header_.descr = inside;
    return {};
  }

  Status order() {
    if (accept_word("True")) {
      header_.fortran_order = true;
      return {};
    }
    if (accept_word("False")) return {};
    return bad("has a fortran_order that is neither True nor False");
  }

  Status shape() {
    QUERN_RETURN_IF_ERROR(expect('('));
    while (!accept(')')) {
      skip_space();
      std::uint64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc()) return bad("has an extent that is not a whole number of at most 64 bits");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2 wrote long integers so
      if (header_.shape.size() == kMaxRank)
        return fail(what_, StatusCode::invalid_shape,
                    "it has more than " + std::to_string(kMaxRank) + " axes; reshape it to fewer");
      header_.shape.push_back(extent);
      if (accept(',')) continue;
      QUERN_RETURN_IF_ERROR(expect(')'));
      break;
    }
    return {};
  }

  std::string_view text_;
  std::string& what_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

std::optional<DType> numeric_type(char letter, unsigned bytes) {
  switch (letter) {
    case 'f':
      return bytes == 2   ? std::optional(DType::f16)
             : bytes == 4 ? std::optional(DType::f32)
             : bytes == 8 ? std::optional(DType::f64)
                          : std::nullopt;
    case 'c': return bytes == 8 ? std::optional(DType::f32) : bytes == 16 ? std::optional(DType::f64) : std::nullopt;
    case 'i':
    case 'u': {
      const std::string name = letter + std::to_string(8 * bytes);
      return parse_dtype(name);
    }
    default: return std::nullopt;
  }
}

}  // namespace

Result<NpyPrefix> parse_npy_prefix(std::span<const std::uint8_t> bytes, std::string& what) {
  if (bytes.size() < kNpyPrefixShort || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return fail(what, StatusCode::bad_magic, "it does not begin like a .npy file; read it as raw if it is one");
  const unsigned major = bytes[6];
  if (major < 1 || major > 3)
    return fail(what, StatusCode::unsupported,
                "its format version is " + std::to_string(major) + "; versions 1 to 3 are known");
  NpyPrefix prefix{kNpyPrefixShort, static_cast<std::uint32_t>(bytes[8] | bytes[9] << 8)};
  if (major > 1) {
    if (bytes.size() < kNpyPrefixLong) return fail(what, StatusCode::truncated, "it ends inside its header");
    prefix.prefix_bytes = kNpyPrefixLong;
    prefix.text_bytes |= static_cast<std::uint32_t>(bytes[10]) << 16 | static_cast<std::uint32_t>(bytes[11]) << 24;
  }
  if (prefix.text_bytes > kMaxNpyHeader)
    return fail(what, StatusCode::corrupt,
                "its header claims " + std::to_string(prefix.text_bytes) + " bytes; at most " +
                    std::to_string(kMaxNpyHeader) + " are read");
  return prefix;
}

Result<NpyHeader> parse_npy_header(std::string_view text, std::string& what) {
  return HeaderParser(text, what).parse();
}

Result<NpyType> parse_npy_descr(std::string_view descr, std::string& what) {
  const Status unknown = {StatusCode::unsupported, "the file holds an element type quern has not"};
  const std::string name(descr.substr(0, 16));
  NpyType type;
  type.big_endian = std::endian::native == std::endian::big;
  std::string_view rest = descr;
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    if (rest.front() == '<') type.big_endian = false;
    if (rest.front() == '>') type.big_endian = true;
    rest.remove_prefix(1);
  }
  unsigned bytes = 0;
  const bool has_letter = rest.size() >= 2;
  const auto parsed = has_letter ? std::from_chars(rest.data() + 1, rest.data() + rest.size(), bytes)
                                 : std::from_chars_result{rest.data(), std::errc::invalid_argument};
  const bool complete = parsed.ec == std::errc() && parsed.ptr == rest.data() + rest.size() && bytes <= 16;
  if (complete && rest[0] == 'V' && bytes == 2) {
    type.dtype = DType::bf16;
    type.is_void2 = true;
    return type;
  }
  const auto dtype = complete ? numeric_type(rest[0], bytes) : std::nullopt;
  if (!dtype) {
    what = "its element type '" + name + "' is none that quern has; convert it with numpy's astype first";
    return unknown;
  }
  type.dtype = *dtype;
  type.is_complex = rest[0] == 'c';
  return type;
}

std::vector<std::uint8_t> build_npy_header(const NpyHeader& header) {
  std::string text = "{'descr': '" + header.descr + "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
                     ", 'shape': (";
  for (std::size_t a = 0; a < header.shape.size(); ++a) {
    text += std::to_string(header.shape[a]);
    if (a + 1 < header.shape.size()) text += ", ";
  }
  // A tuple of one element keeps its comma in Python.
  text += header.shape.size() == 1 ? ",), }" : "), }";
  const std::size_t total = (kNpyPrefixShort + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(total - kNpyPrefixShort - 1, ' ');
  text += '\n';
  std::vector<std::uint8_t> out(total);
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  out[6] = 1;
  out[8] = static_cast<std::uint8_t>(text.size() & 0xff);
  out[9] = static_cast<std::uint8_t>(text.size() >> 8);
  std::copy(text.begin(), text.end(), out.begin() + kNpyPrefixShort);
  return out;
}

std::string npy_descr(DType dtype, bool is_complex) {
  const std::size_t bytes = dtype_bytes(dtype);
  if (dtype == DType::bf16) return std::endian::native == std::endian::little ? "<V2" : ">V2";
  std::string out = bytes == 1 ? "|" : std::endian::native == std::endian::little ? "<" : ">";
  if (is_complex) return out + "c" + std::to_string(2 * bytes);
  out += is_float(dtype) ? 'f' : is_signed_integer(dtype) ? 'i' : 'u';
  return out + std::to_string(bytes);
}

}  // namespace quern::io
