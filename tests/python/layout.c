/* Sizes and offsets of the structs of quern.h, one a line: "struct member offset", and "struct . size". */
#include <stddef.h>
#include <stdio.h>

#include <quern/quern.h>

#define SIZE(type) printf(#type " . %zu\n", sizeof(type))
#define AT(type, member) printf(#type " " #member " %zu\n", offsetof(type, member))

int main(void) {
  SIZE(quern_context_desc);
  AT(quern_context_desc, memory_limit);
  AT(quern_context_desc, progress);
  AT(quern_context_desc, progress_user);
  AT(quern_context_desc, runs_on);
  AT(quern_context_desc, device);
  SIZE(quern_array);
  AT(quern_array, dtype);
  AT(quern_array, memory);
  AT(quern_array, rank);
  AT(quern_array, extents);
  AT(quern_array, strides);
  AT(quern_array, data);
  SIZE(quern_codec_info);
  AT(quern_codec_info, name);
  AT(quern_codec_info, idempotent);
  SIZE(quern_report);
  AT(quern_report, enforced_value);
  AT(quern_report, output_bytes);
  AT(quern_report, psnr_db);
  AT(quern_report, codec_id);
  SIZE(quern_stream_info);
  AT(quern_stream_info, extents);
  AT(quern_stream_info, enforced_value);
  AT(quern_stream_info, metadata_bytes);
  AT(quern_stream_info, fills);
  AT(quern_stream_info, format_major);
  SIZE(quern_verdict);
  AT(quern_verdict, violations);
  AT(quern_verdict, first_error);
  SIZE(quern_quality);
  AT(quern_quality, max_error);
  AT(quern_quality, max_ulp);
  SIZE(quern_source);
  AT(quern_source, size);
  AT(quern_source, read);
  AT(quern_source, user);
  SIZE(quern_precision);
  AT(quern_precision, kind);
  AT(quern_precision, value);
  AT(quern_precision, mantissa_bits);
  AT(quern_precision, axis);
  printf("abi . %d\n", QUERN_ABI_VERSION);
  return 0;
}
