// Pictures of point clouds: from above, and as the sensor saw them.
#pragma once

#include <vector>

#include "cli/report/cloud_report.h"
#include "cli/report/png.h"

namespace quern::report {

enum class CloudValue { height, error, range };

/// The square that is shown from above: its middle and half of its side, in metres.
struct CloudFrame {
  double x = 0, y = 0, half = 1;
};
/// Holds 99 of 100 points of both clouds.
CloudFrame choose_frame(const std::vector<CloudPoint>& a, const std::vector<CloudPoint>& b);

/// low and high of a colour scale.
struct Scale {
  double low = 0, high = 1;
};
/// From the 2nd to the 98th of 100 values; of errors from 0 to the largest.
Scale choose_scale(const std::vector<CloudPoint>& a, const std::vector<CloudPoint>& b, CloudValue value);

/// From above; x to the right, y up. Of points in one pixel the highest is seen, of errors the largest.
IndexedImage birds_eye(const std::vector<CloudPoint>& points, const CloudFrame& frame, CloudValue value, Scale scale);

/// As a sensor at the origin sees it: azimuth from 180 degrees on the left to -180 on the right, elevation upwards. Of
/// points in one pixel the nearest is seen, of errors the largest.
IndexedImage range_image(const std::vector<CloudPoint>& points, CloudValue value, Scale scale);

}  // namespace quern::report
