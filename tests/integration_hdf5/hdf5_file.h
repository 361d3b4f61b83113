// What the tests of the HDF5 filter share: files that vanish, identifiers that close, property lists, values, the error
// stack as text.
#pragma once

#include <hdf5.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <quern/hdf5.h>

namespace quern::hdf5_test {

using Extents = std::vector<hsize_t>;
using Words = std::vector<unsigned>;

/// An identifier with the function that closes it.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id() = default;
  Id(hid_t id, Close close) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    reset();
    id_ = std::exchange(other.id_, -1);
    close_ = other.close_;
    return *this;
  }
  ~Id() { reset(); }
  /// Closing would take the reason of an earlier failure off the error stack: it is put back.
  void reset() {
    if (id_ < 0) return;
    const hid_t stack = H5Eget_current_stack();
    close_(std::exchange(id_, -1));
    H5Eset_current_stack(stack);
  }
  operator hid_t() const { return id_; }  // NOLINT: as HDF5's own identifiers
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Takes the descriptions off the error stack, innermost first; those of quern are marked "quern:".
inline std::string error_text() {
  std::string text;
  const auto add = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    char name[64] = "";
    H5Eget_class_name(error->cls_id, name, sizeof name);
    *static_cast<std::string*>(out) += std::string(name) + ": " + (error->desc == nullptr ? "" : error->desc) + "\n";
    return 0;
  };
  const Id stack(H5Eget_current_stack(), H5Eclose_stack);  // walking the current one would clear it at the first call
  H5Ewalk2(stack, H5E_WALK_UPWARD, add, &text);
  return text;
}

/// Takes the stack; quern's own line among it has this part.
inline testing::AssertionResult reason_has(const std::string& part) {
  const std::string text = error_text();
  if (text.find("quern: ") != std::string::npos && text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no '" << part << "' in the reason:\n" << text;
}

/// Registers the filter, keeps HDF5 from printing, and has a file that vanishes.
class Hdf5FilterTest : public testing::Test {
 protected:
  void SetUp() override {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    ASSERT_GE(quern_hdf5_register(), 0);
    path_ = testing::TempDir() + "quern_hdf5_" + std::to_string(::getpid()) + ".h5";
    file_ = Id(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    ASSERT_TRUE(file_.ok());
  }
  void TearDown() override {
    file_.reset();
    ::unlink(path_.c_str());
  }
  /// Closes and opens again, so that nothing comes out of a cache.
  void reopen() {
    file_.reset();
    file_ = Id(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    ASSERT_TRUE(file_.ok());
  }

  Id create(const char* name, hid_t type, const Extents& extents, hid_t dcpl) {
    const Id space = space_of(extents);
    return {H5Dcreate2(file_, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), H5Dclose};
  }
  Id space_of(const Extents& extents) {
    return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose};
  }
  Id open(const char* name) { return {H5Dopen2(file_, name, H5P_DEFAULT), H5Dclose}; }

  Id file_;
  std::string path_;
};

inline Words request(quern_bound_kind kind, double value, std::uint32_t codec = 0, std::uint32_t options = 0) {
  Words words(QUERN_HDF5_REQUEST_WORDS);
  EXPECT_GE(quern_hdf5_request(kind, value, codec, options, words.data()), 0) << error_text();
  return words;
}

inline Id chunked(const Extents& chunk, const Words& words, unsigned flags = H5Z_FLAG_MANDATORY) {
  Id dcpl(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  EXPECT_GE(H5Pset_chunk(dcpl, static_cast<int>(chunk.size()), chunk.data()), 0);
  EXPECT_GE(H5Pset_filter(dcpl, QUERN_HDF5_FILTER_ID, flags, words.size(), words.data()), 0) << error_text();
  return dcpl;
}

/// The words a dataset ended up with.
inline Words stored_words(hid_t dcpl) {
  unsigned flags = 0, config = 0;
  std::size_t count = 64;
  Words words(count);
  EXPECT_GE(H5Pget_filter_by_id2(dcpl, QUERN_HDF5_FILTER_ID, &flags, &count, words.data(), 0, nullptr, &config), 0);
  words.resize(count);
  return words;
}

inline std::size_t elems_of(const Extents& extents) {
  std::size_t out = 1;
  for (const hsize_t e : extents) out *= e;
  return out;
}

/// A smooth wave, in the middle of the type's range where the type has no sign.
template <class T>
std::vector<T> wave(std::size_t count) {
  std::vector<T> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i);
    double value = 40 * std::sin(x * 0.05) + 20 * std::cos(x * 0.0071);
    if (std::is_unsigned_v<T>) value += 100;
    out[i] = static_cast<T>(value);
  }
  return out;
}

/// |a - b| <= bound for every element, without rounding: long double holds every 64-bit integer and binary64 number.
template <class T>
void expect_within(const std::vector<T>& a, const std::vector<T>& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double error = std::fabs(static_cast<long double>(a[i]) - static_cast<long double>(b[i]));
    ASSERT_LE(error, static_cast<long double>(bound)) << "element " << i << ": " << +a[i] << " became " << +b[i];
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The stored bytes of one chunk; empty when there is none.
inline std::vector<std::uint8_t> chunk_bytes(hid_t dataset, const Extents& offset) {
  hsize_t size = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &size) < 0) return {};
  std::vector<std::uint8_t> bytes(size);
  std::uint32_t mask = 0;
  EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &mask, bytes.data()), 0);
  EXPECT_EQ(mask, 0U);
  return bytes;
}

/// A 16-bit float type by its fields.
inline Id small_float(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias, H5T_order_t order) {
  Id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  EXPECT_GE(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), 0);
  EXPECT_GE(H5Tset_precision(type, 16), 0);
  EXPECT_GE(H5Tset_size(type, 2), 0);
  EXPECT_GE(H5Tset_ebias(type, bias), 0);
  EXPECT_GE(H5Tset_order(type, order), 0);
  return type;
}

}  // namespace quern::hdf5_test
