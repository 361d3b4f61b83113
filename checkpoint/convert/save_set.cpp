#include "checkpoint/convert/save_set.h"

#include "checkpoint/convert/lossy_summary.h"
#include "checkpoint/convert/set_coding.h"

namespace quern::checkpoint {

Result<SetCounts> save_set(SaveSession& session, TensorSet& set, const FileSaveOptions& options, TaskRunner& runner,
                           Report& report) {
  SetCounts out;
  SetCoding coding(set, options, runner);
  QUERN_RETURN_IF_ERROR(coding.prepare(report));
  QUERN_RETURN_IF_ERROR(coding.run(session, report));
  const auto summaries = coding.take_summaries();
  add_fallback_notes(summaries, report);
  const LossySummary loss = summarize_loss(summaries);
  if (loss.lossy != 0) report.notes.push_back(loss_sentence(loss));
  if (String note = unnamed_weights_note(options.preset, summaries); !note.empty())
    report.notes.push_back(std::move(note));
  out.lossy = loss.lossy;
  for (const TensorSummary& tensor : summaries) {
    out.raw_bytes += tensor.raw_bytes;
    out.stored_bytes += tensor.saved.stored_bytes;
    out.tensors += 1;
    out.stored_already += tensor.saved.alias ? 1 : 0;
  }
  return out;
}

}  // namespace quern::checkpoint
