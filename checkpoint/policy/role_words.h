// Words of tensor names as PyTorch, DeepSpeed, Megatron and their companions write them, and what they tell.
#pragma once

#include <string_view>

#include <quern/memory.h>

namespace quern::checkpoint {

/// The words between '.' and '/'.
Vector<std::string_view> words_of(std::string_view name);

/// Whose tensors the words before the last ones name.
enum class NameContext {
  unknown,    ///< of anything: caches, tables, averages, queues
  model,      ///< under a container of a model, with nothing but containers before it
  optimizer,  ///< under a container of an optimizer's state
};
NameContext context_of(const Vector<std::string_view>& words);

/// Words that only say where a tensor was kept.
bool is_container(std::string_view word);

/// The role that a word gives, or empty. Words such as sum and Q count in the state of an optimizer alone.
std::string_view role_of_word(std::string_view word, NameContext context);

/// Whether a tensor under a model is no weight: statistics, averages, caches, scales, masks.
bool names_buffer(const Vector<std::string_view>& words);

/// Whether a word behind a role names a part of codes in few bits, as torchao has them: then it is no moment.
bool is_code_part(std::string_view word);

/// Whether a word is of the state that Adam, AdamW, NAdam and RAdam keep of a parameter. Beside any other word an
/// exp_avg is not known to be in the units of the root of exp_avg_sq.
bool is_adam_state(std::string_view word);

}  // namespace quern::checkpoint
