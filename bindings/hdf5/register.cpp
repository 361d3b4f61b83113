// What programs that are linked with the filter call: registration without a plugin path, and the words of a request.
#include <quern/hdf5.h>

#include "bindings/hdf5/chunk_stream.h"
#include "bindings/hdf5/error_stack.h"
#include "bindings/hdf5/filter.h"

herr_t quern_hdf5_register(void) {
  return quern::hdf5::guarded<herr_t>("quern_hdf5_register", -1,
                                      [] { return H5Zregister(&quern::hdf5::filter_class()); });
}

herr_t quern_hdf5_request(quern_bound_kind kind, double value, uint32_t codec_id, uint32_t options,
                          unsigned words[QUERN_HDF5_REQUEST_WORDS]) {
  using namespace quern::hdf5;
  return guarded<herr_t>("quern_hdf5_request", -1, [&] {
    if (words == nullptr) throw Problem(Trouble::request, "the place for the words is NULL");
    Request request;
    request.codec_id = codec_id;
    request.kind = kind;
    request.value = kind == QUERN_BOUND_LOSSLESS ? 0.0 : value;
    request.options = options;
    const Words made = make_words(request, {});
    const Request checked = parse_request(made.data(), kRequestWords);
    check_request(checked);
    for (std::size_t i = 0; i < kRequestWords; ++i) words[i] = made[i];
    return 0;
  });
}
