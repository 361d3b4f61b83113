// The page behind `quern lidar compare --html`.
#pragma once

#include <string>
#include <vector>

namespace quern::report {

/// A finite point in metres, and its distance to the nearest point of the other cloud.
struct CloudPoint {
  double x = 0, y = 0, z = 0;
  double error = 0;
};

/// A figure in both directions, in metres.
struct CloudFigure {
  std::string name;
  double forward = 0;
  double backward = 0;
};

struct CloudReport {
  std::string original_name = "A";
  std::string decoded_name = "B";
  std::vector<CloudPoint> original;
  std::vector<CloudPoint> decoded;
  std::vector<CloudFigure> figures;
  double d1_psnr_db = 0;
  std::string footer;
};

/// A self-contained HTML page (UTF-8, well-formed as XML too): both clouds from above, coloured by height and by error;
/// both as range images around the sensor, with the error; histogram of the distances in both directions; figures.
/// Clouds of any size, also empty; the page does not grow with them beyond about 2 MB.
std::string cloud_report_html(const CloudReport& report);

}  // namespace quern::report
