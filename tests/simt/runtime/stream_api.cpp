// Streams and events.
#include "tests/simt/runtime/runtime.h"

namespace {

using simt::Runtime;

/// Operations that a query may let run; some queries let none, so that whoever asks must be ready to ask again.
constexpr std::uint64_t kOperationsOfQuery = 3;

cudaError_t create_stream(cudaStream_t* out, unsigned flags) {
  return simt::call([&](Runtime& state) {
    if ((flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
    auto made = std::make_unique<CUstream_st>();
    made->device = simt::current_device();
    made->flags = flags;
    *out = made.get();
    state.streams[made.get()] = std::move(made);
    return cudaSuccess;
  });
}

CUevent_st* find_event(Runtime& state, cudaEvent_t event) {
  const auto found = state.events.find(event);
  return found == state.events.end() ? nullptr : found->second.get();
}

bool captured(const CUevent_st& event) { return event.capture != nullptr; }

/// Lets a stream wait for the nodes of a capture, which makes it part of that.
cudaError_t join_capture(CUstream_st& stream, CUevent_st& event) {
  if (stream.legacy) return cudaErrorStreamCaptureImplicit;
  if (stream.capture == nullptr) {
    if (stream.last != nullptr && !stream.last->done) return cudaErrorStreamCaptureIsolation;
    stream.capture = event.capture;
    stream.capture_after.clear();
  }
  if (stream.capture != event.capture) return cudaErrorStreamCaptureMerge;
  stream.capture_after.insert(stream.capture_after.end(), event.capture_after.begin(), event.capture_after.end());
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* pStream) { return create_stream(pStream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  return create_stream(pStream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int) {
  return create_stream(pStream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr || found->legacy) return cudaErrorInvalidResourceHandle;
    if (found->capture != nullptr) state.invalidate(*found->capture);
    if (found->pending.empty()) {
      state.streams.erase(stream);
    } else {
      found->destroyed = true;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (found->capture != nullptr) {
      state.invalidate(*found->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    ++state.counters.synchronizations;
    const int device = found->device;
    state.finish_stream(*found);
    return state.devices[static_cast<std::size_t>(device)].broken;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (found->capture != nullptr) {
      state.invalidate(*found->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    ++state.counters.queries;
    state.run_some(state.random.below(kOperationsOfQuery));
    return found->pending.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int* device) {
  return simt::call([&](Runtime& state) {
    const CUstream_st* const found = state.find_stream(hStream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    *device = found->device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int* flags) {
  return simt::call([&](Runtime& state) {
    const CUstream_st* const found = state.find_stream(hStream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    *flags = found->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    CUevent_st* const what = find_event(state, event);
    if (found == nullptr || what == nullptr) return cudaErrorInvalidResourceHandle;
    if (flags != 0) return cudaErrorInvalidValue;
    if (captured(*what)) {
      const cudaError_t error = join_capture(*found, *what);
      if (error != cudaSuccess) state.invalidate(*what->capture);
      return error;
    }
    if (found->capture != nullptr) {
      state.invalidate(*found->capture);
      return cudaErrorStreamCaptureIsolation;
    }
    if (what->recorded == nullptr || what->recorded->done) return cudaSuccess;
    simt::OperationRef wait;
    const cudaError_t error = state.enqueue(*found, {}, &wait);
    if (error == cudaSuccess) wait->after.push_back(what->recorded);
    return error;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  return simt::call([&](Runtime& state) {
    CUstream_st* found = nullptr;
    if (const cudaError_t error = state.own_stream(stream, found); error != cudaSuccess) return error;
    if (fn == nullptr) return cudaErrorInvalidValue;
    return state.enqueue(*found, {-1, [fn, userData] {
                                    simt::in_host_function() = true;
                                    fn(userData);
                                    simt::in_host_function() = false;
                                  }});
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return simt::call([&](Runtime& state) {
    if ((flags & ~static_cast<unsigned>(cudaEventBlockingSync | cudaEventDisableTiming)) != 0)
      return cudaErrorInvalidValue;
    auto made = std::make_unique<CUevent_st>();
    made->device = simt::current_device();
    made->flags = flags;
    *event = made.get();
    state.events[made.get()] = std::move(made);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return simt::call(
      [&](Runtime& state) { return state.events.erase(event) != 0 ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    CUevent_st* const what = find_event(state, event);
    if (found == nullptr || what == nullptr || found->device != what->device) return cudaErrorInvalidResourceHandle;
    if (found->capture != nullptr) {
      if (found->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      what->recorded = nullptr;
      what->capture = found->capture;
      what->capture_after = found->capture_after;
      return cudaSuccess;
    }
    what->capture = nullptr;
    return state.enqueue(*found, {}, &what->recorded);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return simt::call([&](Runtime& state) {
    CUevent_st* const what = find_event(state, event);
    if (what == nullptr) return cudaErrorInvalidResourceHandle;
    if (captured(*what)) return cudaErrorCapturedEvent;
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    ++state.counters.queries;
    state.run_some(state.random.below(kOperationsOfQuery));
    return what->recorded == nullptr || what->recorded->done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return simt::call([&](Runtime& state) {
    CUevent_st* const what = find_event(state, event);
    if (what == nullptr) return cudaErrorInvalidResourceHandle;
    if (captured(*what)) return cudaErrorCapturedEvent;
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    ++state.counters.synchronizations;
    const int device = what->device;
    state.finish(what->recorded);
    return state.devices[static_cast<std::size_t>(device)].broken;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return simt::call([&](Runtime& state) {
    const CUevent_st* const from = find_event(state, start);
    const CUevent_st* const to = find_event(state, end);
    if (from == nullptr || to == nullptr || ((from->flags | to->flags) & cudaEventDisableTiming) != 0 ||
        from->recorded == nullptr || to->recorded == nullptr)
      return cudaErrorInvalidResourceHandle;
    if (!from->recorded->done || !to->recorded->done) return cudaErrorNotReady;
    // A microsecond an operation: there is no time here.
    *ms = 1e-3f * (static_cast<float>(to->recorded->done_at) - static_cast<float>(from->recorded->done_at));
    return cudaSuccess;
  });
}
}
