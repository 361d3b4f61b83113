/* <quern/lidar.h> from C99: a drive of two scans is written, read, measured, added to a history and removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/lidar.h>

#define CHECK(call)                                                                 \
  do {                                                                              \
    if ((call) != QUERN_OK) {                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, quern_lidar_last_error()); \
      return 1;                                                                     \
    }                                                                               \
  } while (0)

int main(void) {
  enum { kPoints = 500 };
  float xyz[kPoints][3];
  float intensity[kPoints];
  char path[32];
  quern_lidar_writer* writer = NULL;
  quern_lidar_drive* drive = NULL;
  quern_lidar_cloud* cloud = NULL;
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
  quern_lidar_cloud_desc back = QUERN_LIDAR_CLOUD_DESC_INIT;
  quern_lidar_column column = QUERN_LIDAR_COLUMN_INIT;
  const quern_lidar_column* columns[1];
  quern_lidar_distances distances = QUERN_LIDAR_DISTANCES_INIT;
  quern_lidar_result result = QUERN_LIDAR_RESULT_INIT;
  quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
  quern_lidar_history* history = NULL;
  quern_lidar_addition addition = QUERN_LIDAR_ADDITION_INIT;
  const double pose[12] = {1, 0, 0, 5, 0, 1, 0, 0, 0, 0, 1, 0};
  char folder[32];
  char command[64];
  int i;
  for (i = 0; i < kPoints; ++i) {
    xyz[i][0] = (float)(i % 50) * 0.25F;
    xyz[i][1] = (float)(i / 50) * 0.5F;
    xyz[i][2] = (float)(i * 7 % 11) * 0.01F;
    intensity[i] = (float)(i % 4);
  }
  snprintf(path, sizeof path, "lidar_c_%d.qnl", rand() % 1000000);
  column.dtype = QUERN_F32;
  column.name = "intensity";
  column.values = intensity;
  columns[0] = &column;
  scan.points = kPoints;
  scan.xyz = xyz;
  scan.columns = columns;
  scan.column_count = 1;
  desc.mode = QUERN_LIDAR_SET;
  desc.max_error = 0.15;
  desc.replace = 1;
  CHECK(quern_lidar_writer_open(path, &desc, NULL, &writer));
  frame.pose = pose;
  CHECK(quern_lidar_writer_add(writer, &scan, &frame));
  CHECK(quern_lidar_writer_add(writer, &scan, &frame));
  CHECK(quern_lidar_writer_finish(writer, &result));
  quern_lidar_writer_destroy(writer);
  if (result.frames != 2 || result.points != 2 * kPoints || result.achieved_error > 0.15) return 2;
  CHECK(quern_lidar_drive_open(path, NULL, &drive));
  if (quern_lidar_drive_frames(drive) != 2) return 3;
  snprintf(folder, sizeof folder, "lidar_c_%d.history", rand() % 1000000);
  CHECK(quern_lidar_history_create(folder, NULL));
  CHECK(quern_lidar_history_open(folder, NULL, &history));
  CHECK(quern_lidar_history_add_drive(history, drive, &addition));
  if (addition.epoch != 1 || addition.frames != 2) return 6;
  CHECK(quern_lidar_drive_set_history(drive, history));
  CHECK(quern_lidar_drive_read(drive, 1, &cloud));
  quern_lidar_drive_destroy(drive);
  quern_lidar_history_destroy(history);
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) return 7;
  CHECK(quern_lidar_cloud_get(cloud, &back));
  if (back.column_count != 1 || strcmp(back.columns[0]->name, "intensity") != 0) return 4;
  CHECK(quern_lidar_measure(&scan, &back, NULL, &distances));
  if (distances.max_forward > 0.15 || distances.max_backward > 0.15) return 5;
  printf("largest distance %.4f m and back %.4f m\n", distances.max_forward, distances.max_backward);
  quern_lidar_cloud_destroy(cloud);
  remove(path);
  return 0;
}
