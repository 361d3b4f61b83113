/* Part of the C interface <quern/quern.h>, which includes it; its rules hold here: what is asked of an array before it
 * is compressed. */
#ifndef QUERN_QUERN_ESTIMATE_H
#define QUERN_QUERN_ESTIMATE_H

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bounds from digits ------------------------------------------------------------------------------------------ */

/** A bound that was found from the values of an array: what to give quern_params_set_bound. */
typedef struct quern_precision {
  uint32_t struct_size;
  quern_bound_kind
      kind; /**< QUERN_BOUND_ABS, QUERN_BOUND_PWREL, or QUERN_BOUND_LOSSLESS where no valid value differs from 0
                              or nothing tells bits from noise; ABS where all values are of about one magnitude */
  double value;
  int32_t mantissa_bits; /**< by information: bits of the mantissa that have the share; -1: not known, or by digits */
  uint32_t axis;         /**< the axis along which they were found */
} quern_precision;
#define QUERN_PRECISION_INIT \
  { sizeof(quern_precision), 0, 0, -1, 0 }

/** The bound under which every valid value keeps so many significant decimal digits: |x - x'| <= 5 * 10^-(digits + 1) |x|.
 *  digits: 1 to 17. `params` (may be NULL) gives fill values; nothing else of it counts, and it is not changed. Floating
 *  point arrays, on the host or a device, of any strides; strided ones and those on a device are copied. O(n), all threads
 *  of the context. QUERN_ERROR_INVALID_BOUND for other digits, QUERN_ERROR_UNSUPPORTED for integers. */
QUERN_API quern_status quern_precision_of_digits(quern_context* context, const quern_params* params,
                                                 const quern_array* array, uint32_t digits, quern_precision* precision);
/** The bound of rounding to the fewest bits of the mantissa that have `share` (above 0, below 1) of the bitwise real
 *  information (Kloewer et al. 2021, doi:10.1038/s43588-021-00156-2), along the axis that needs most. Otherwise as above.
 *  O(n * rank); does not depend on threads. */
QUERN_API quern_status quern_precision_of_information(quern_context* context, const quern_params* params,
                                                      const quern_array* array, double share,
                                                      quern_precision* precision);

/* ---- quality without compressing -------------------------------------------------------------------------------- */

/** A predicted number, and the 10 % and 90 % quantiles around it: about four of five true numbers lay between them in the
 *  training. low <= value <= high. */
typedef struct quern_interval {
  double low;
  double value;
  double high;
} quern_interval;

/** What a codec would make of an array under a bound. */
typedef struct quern_prediction {
  uint32_t struct_size;
  uint16_t codec_id;     /**< quern_codec_info */
  uint16_t wide;         /**< 1: nothing in the training was like it, and the intervals are wide */
  quern_bound_kind kind; /**< as asked; QUERN_BOUND_LOSSLESS for codecs that keep every bit */
  int32_t reserved;
  double bound;                     /**< as asked */
  double absolute;                  /**< the bound in the array's units; 0: every bit comes back */
  quern_interval ratio;             /**< raw bytes by stream bytes */
  quern_interval psnr_db;           /**< NaN: every bit comes back */
  quern_interval ssim;              /**< NaN: it does not apply */
  quern_interval max_error;         /**< largest error by the bound, 0 to 1 */
  quern_interval autocorrelation;   /**< of the errors of neighbours along the last axis, -1 to 1 */
  quern_interval compress_mb_per_s; /**< 10^6 raw bytes a second, on one thread of this machine */
  quern_interval decompress_mb_per_s;
} quern_prediction;
/* clang-format off */
#define QUERN_PREDICTION_INIT                                                                                   \
  { sizeof(quern_prediction), 0, 0, 0, 0, 0, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0} }
/* clang-format on */

/** Predicts ratio, quality and speed under `count` bounds of kind QUERN_BOUND_REL or QUERN_BOUND_ABS without compressing
 *  (docs/estimate.md). `params` (may be NULL) gives the codec (auto: all that the model knows), fill values and range;
 *  its bound and other settings do not count.
 *
 *  `predictions` has room for `capacity` structs, which lie the first one's struct_size apart; codec by codec, bounds in
 *  the order given, codecs that keep every bit once. `*found` is how many there are, and `count` times
 *  quern_codec_count() always suffice; QUERN_ERROR_DESTINATION_TOO_SMALL, with `*found` set, when there is too little
 *  room. Predictions, but speeds, do not depend on threads or machine.
 *
 *  Reads all values once for their range unless it is given, and then some 2^17 of them. Memory besides a copy
 *  of an array that is strided or on a device: a few MB of the C++ heap. QUERN_ERROR_INVALID_BOUND for a bound that is no
 *  positive number, QUERN_ERROR_UNKNOWN_CODEC for a codec that the model does not know, QUERN_ERROR_INVALID_SHAPE for an
 *  array without elements. */
QUERN_API quern_status quern_estimate(quern_context* context, const quern_params* params, const quern_array* array,
                                      quern_bound_kind kind, const double* bounds, uint32_t count,
                                      quern_prediction* predictions, uint32_t capacity, uint32_t* found);

#ifdef __cplusplus
}
#endif
#endif
