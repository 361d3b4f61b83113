/* What the Fortran test asks C: sizes of structs, and what it finds in members that Fortran has filled in. */
#include <quern/quern.h>

size_t layout_size(int which) {
  switch (which) {
    case 1: return sizeof(quern_context_desc);
    case 2: return sizeof(quern_codec_info);
    case 3: return sizeof(quern_array);
    case 4: return sizeof(quern_report);
    case 5: return sizeof(quern_stream_info);
    case 6: return sizeof(quern_verdict);
    case 7: return sizeof(quern_quality);
    default: return 0;
  }
}

/* Every member its own number, in the order of the header. */
void layout_fill(quern_stream_info* info, quern_report* report, quern_quality* quality) {
  const quern_stream_info i = {
      sizeof(quern_stream_info), 1, 2, 3, 4, {5, 6, 7, 8, 9, 10, 11, 12}, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  const quern_report r = {sizeof(quern_report), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const quern_quality q = {sizeof(quern_quality), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  *info = i;
  *report = r;
  *quality = q;
}

/* The members of a context description that Fortran numbered 2, 3, 4 (runner.width, threads, memory_limit). */
int layout_desc_is_numbered(const quern_context_desc* desc) {
  return desc->runner.width == 2 && desc->threads == 3 && desc->memory_limit == 4 && desc->runner.run == NULL &&
         desc->progress == NULL && desc->progress_user == NULL && desc->runner.user == NULL;
}

/* The last member of a context description. */
int layout_desc_has_user(const quern_context_desc* desc, const void* user) {
  return desc->allocator.user == user && desc->allocator.allocate == NULL && desc->allocator.release == NULL;
}
