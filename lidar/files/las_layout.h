// Point records of LAS 1.0 to 1.4 (ASPRS LAS specification 1.4 R15, tables 7 to 17), and the fields of its header.
#pragma once

#include <cstdint>

#include <quern/memory.h>
#include <quern/status.h>

#include "lidar/files/raw_fields.h"

namespace quern::lidar {

inline constexpr unsigned kMostLasFormat = 10;
inline constexpr std::uint64_t kLasCoordinateBytes = 12;

/// Places in the header.
inline constexpr std::size_t kLasMinorAt = 25;
inline constexpr std::size_t kLasHeaderSizeAt = 94;
inline constexpr std::size_t kLasPointsAt = 96;
inline constexpr std::size_t kLasFormatAt = 104;
inline constexpr std::size_t kLasRecordBytesAt = 105;
inline constexpr std::size_t kLasCountAt = 107;
inline constexpr std::size_t kLasReturnsAt = 111;
inline constexpr std::size_t kLasScaleAt = 131;
inline constexpr std::size_t kLasOffsetAt = 155;
inline constexpr std::size_t kLasBoxAt = 179;
inline constexpr std::size_t kLasWaveformAt = 227;
inline constexpr std::size_t kLasExtendedAt = 235;
inline constexpr std::size_t kLasCount64At = 247;
inline constexpr std::size_t kLasReturns64At = 255;
inline constexpr std::uint64_t kLasHeaderBytes = 227;
inline constexpr std::uint64_t kLasHeaderBytes14 = 375;

/// Bytes of a record of a point format, without extra bytes; 0 for formats that do not exist.
std::uint64_t las_record_bytes(unsigned format);

/// The fields behind X, Y, Z of a record, with extra bytes as columns extra_0, extra_1, ... of 8, 4, 2 and 1 bytes.
/// Fails with `unsupported` where a frame has no room for so many.
Result<Vector<RawField>> las_fields(unsigned format, std::uint64_t record_bytes);

}  // namespace quern::lidar
