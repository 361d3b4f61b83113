// Tables of words.
#include "checkpoint/policy/role_words.h"

#include <algorithm>

namespace quern::checkpoint {
namespace {

using Word = std::string_view;

struct RoleWord {
  Word word, role;
};
constexpr RoleWord kRoleWords[] = {
    {"exp_avg", "exp_avg"},
    {"exp_avg_sq", "exp_avg_sq"},
    {"max_exp_avg_sq", "max_exp_avg_sq"},
    // Adadelta, Adagrad, RMSprop, Adafactor, CAME, AdaBelief, Adamax.
    {"square_avg", "second_moment"},
    {"acc_delta", "second_moment"},
    {"exp_avg_sq_row", "second_moment"},
    {"exp_avg_sq_col", "second_moment"},
    {"exp_avg_var", "second_moment"},
    {"max_exp_avg_var", "second_moment"},
    {"exp_inf", "exp_inf"},
    {"grad_avg", "grad_avg"},
    {"momentum_buffer", "momentum"},
    {"momentum", "momentum"},
    {"grad", "grad"},
    {"grads", "grad"},
    {"param", "param"},
    {"params", "param"},
    {"fp32_param", "param"},
    {"fp32_params", "param"},
    {"fp32_from_fp16_params", "param"},
    {"single_partition_of_fp32_groups", "param"},
    {"fp32_flat_groups", "param"},
    {"master", "param"},
    {"master_param", "param"},
    {"master_params", "param"},
    {"master_weight", "param"},
    {"master_weights", "param"},
    {"fp32", "param"},
    {"step", "step"},
};
/// Of the states of optimizers alone.
constexpr RoleWord kStateWords[] = {
    {"sum", "second_moment"},  // Adagrad
    {"row_var", "second_moment"},
    {"col_var", "second_moment"},
    {"variance", "second_moment"},
    {"step_size", "step_size"},  // Rprop
    {"ax", "average"},           // ASGD
    {"prev", "history"},         // Rprop, LBFGS
    {"prev_flat_grad", "history"},
    {"old_dirs", "history"},
    {"old_stps", "history"},
    {"GG", "preconditioner"},  // SOAP
    {"Q", "preconditioner"},
};
constexpr Word kModelWords[] = {"model",      "models",
                                "module",     "modules",
                                "state_dict", "model_state_dict",
                                "base_model", "_orig_mod",
                                "weights",    "_fsdp_wrapped_module"};
constexpr Word kOptimizerWords[] = {"opt", "optim", "opt_state", "opt_states", "base_optimizer_state"};
constexpr Word kPlaces[] = {"optimizer",
                            "optimizer_state",
                            "optim",
                            "state",
                            "state_dict",
                            "model",
                            "module",
                            "zero",
                            "weights",
                            "model_state_dict",
                            "_orig_mod",
                            "_fsdp_wrapped_module",
                            "base_optimizer_state"};
/// They may stand before a model.
constexpr Word kNeutral[] = {"app", "checkpoint", "ckpt", "trainer", "train_state", "zero"};

constexpr Word kAveragePrefixes[] = {"ema_", "swa_", "shadow", "averaged", "queue", "cache_"};
constexpr Word kAverageSuffixes[] = {"_ema", "_cache", "_queue"};
constexpr Word kAverages[] = {"ema", "swa", "cache"};
/// The last word of what a module registers as a buffer.
constexpr Word kBuffers[] = {"running_mean", "running_var",  "num_batches_tracked",
                             "inv_freq",     "freqs",        "freqs_cis",
                             "freqs_cos",    "freqs_sin",    "cos_cached",
                             "sin_cached",   "cluster_size", "embed_avg",
                             "embed_sum",    "mask",         "position_ids",
                             "amax",         "absmax",       "amax_history",
                             "min_val",      "max_val",      "histogram",
                             "mean",         "std",          "var",
                             "variance",     "scales",       "zero_point",
                             "zero_points",  "zeros",        "quant_map",
                             "buffer",       "statistics",   "weight_u",
                             "weight_v",     "_u",           "_v"};
constexpr Word kBufferSuffixes[] = {"_mean",      "_var",    "_std",   "_mask",   "_avg",    "_scale",
                                    "_scale_inv", "_buffer", "_count", "_counts", "_cumprod"};
constexpr Word kAdamState[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step", "mu_product"};

constexpr Word kCodeParts[] = {"codes", "scale", "scales", "qmap", "absmax", "quantized", "zero_point"};

template <class List>
bool is_in(const List& list, Word word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}
template <class List>
Word role_in(const List& list, Word word) {
  const auto* const found =
      std::find_if(std::begin(list), std::end(list), [&](const RoleWord& w) { return w.word == word; });
  return found == std::end(list) ? Word() : found->role;
}
template <class List>
bool ends_with_one(const List& list, Word word) {
  return std::any_of(std::begin(list), std::end(list), [&](Word end) { return word.ends_with(end); });
}
template <class List>
bool begins_with_one(const List& list, Word word) {
  return std::any_of(std::begin(list), std::end(list), [&](Word begin) { return word.starts_with(begin); });
}

bool is_number(Word word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}
/// Also "model0", as virtual stages of a pipeline are called.
bool is_model_word(Word word) {
  return is_in(kModelWords, word) || (word.starts_with("model") && is_number(word.substr(5)));
}
bool is_optimizer_word(Word word) {
  return word.starts_with("optimizer") || word.starts_with("optim_") || is_in(kOptimizerWords, word);
}

}  // namespace

Vector<std::string_view> words_of(std::string_view name) {
  Vector<std::string_view> out;
  while (!name.empty()) {
    const std::size_t length = std::min(name.find_first_of("./"), name.size());
    out.push_back(name.substr(0, length));
    name.remove_prefix(std::min(length + 1, name.size()));
  }
  return out;
}

NameContext context_of(const Vector<std::string_view>& words) {
  if (std::any_of(words.begin(), words.end(), is_optimizer_word)) return NameContext::optimizer;
  for (const Word word : words) {
    if (word == "state") return NameContext::optimizer;
    if (is_model_word(word)) return NameContext::model;
    if (!is_in(kNeutral, word) && !is_number(word) && !word.starts_with("chained_")) break;
  }
  return NameContext::unknown;
}

bool is_container(std::string_view word) { return is_in(kPlaces, word) || word.starts_with("chained_"); }

std::string_view role_of_word(std::string_view word, NameContext context) {
  const Word role = role_in(kRoleWords, word);
  return role.empty() && context == NameContext::optimizer ? role_in(kStateWords, word) : role;
}

bool names_buffer(const Vector<std::string_view>& words) {
  for (const Word word : words)
    if (is_in(kAverages, word) || begins_with_one(kAveragePrefixes, word) || ends_with_one(kAverageSuffixes, word))
      return true;
  return !words.empty() && (is_in(kBuffers, words.back()) || ends_with_one(kBufferSuffixes, words.back()));
}

bool is_code_part(std::string_view word) { return is_in(kCodeParts, word); }

bool is_adam_state(std::string_view word) {
  if (is_in(kAdamState, word) || word == "weight") return true;
  const Word role = role_in(kRoleWords, word);
  return role == "param" || role == "grad";
}

}  // namespace quern::checkpoint
