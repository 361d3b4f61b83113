// The octree codec of the Point Cloud Library as a program, for lidar.py. No part of quern's build: it is compiled by
// hand, with Debian's libpcl-dev, libeigen3-dev and libboost-dev:
//
//   g++ -O2 -DPCL_NO_PRECOMPILE -I/usr/include/pcl-1.13 -I/usr/include/eigen3 pcl_octree.cpp -lpcl_io -lpcl_common \
//       -o pcl_octree
//
// usage: pcl_octree encode IN OUT STEP | decode IN OUT
//
// The files of points hold x, y, z as binary32. `encode` is given one point a cell of a cubic grid of side STEP; the
// codec keeps voxels of that side, whose centres `decode` writes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <pcl/compression/octree_pointcloud_compression.h>
#include <pcl/point_cloud.h>
#include <pcl/point_types.h>
#include <pcl/io/impl/octree_pointcloud_compression.hpp>

namespace {

using Codec = pcl::io::OctreePointCloudCompression<pcl::PointXYZ>;

std::string read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot open\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const char* path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) {
    std::fprintf(stderr, "%s: cannot write\n", path);
    std::exit(2);
  }
}

void encode(const char* from, const char* to, double step) {
  const std::string bytes = read_file(from);
  auto cloud = std::make_shared<pcl::PointCloud<pcl::PointXYZ>>();
  for (std::size_t at = 0; at + 12 <= bytes.size(); at += 12) {
    float xyz[3];
    std::memcpy(xyz, bytes.data() + at, 12);
    cloud->push_back({xyz[0], xyz[1], xyz[2]});
  }
  // Voxels alone, of an octree whose leaves they are; every frame by itself; no colour.
  Codec codec(pcl::io::MANUAL_CONFIGURATION, false, step, step, true, 1, false);
  std::stringstream stream;
  codec.encodePointCloud(cloud, stream);
  write_file(to, stream.str());
}

void decode(const char* from, const char* to) {
  std::stringstream stream(read_file(from));
  auto cloud = std::make_shared<pcl::PointCloud<pcl::PointXYZ>>();
  Codec codec;
  codec.decodePointCloud(stream, cloud);
  std::string bytes;
  for (const pcl::PointXYZ& point : *cloud) {
    const float xyz[3] = {point.x, point.y, point.z};
    bytes.append(reinterpret_cast<const char*>(xyz), sizeof xyz);
  }
  write_file(to, bytes);
}

}  // namespace

int main(int count, char** words) {
  if (count == 5 && std::strcmp(words[1], "encode") == 0) {
    encode(words[2], words[3], std::atof(words[4]));
  } else if (count == 4 && std::strcmp(words[1], "decode") == 0) {
    decode(words[2], words[3]);
  } else {
    std::fprintf(stderr, "usage: pcl_octree encode IN OUT STEP | decode IN OUT\n");
    return 1;
  }
  return 0;
}
