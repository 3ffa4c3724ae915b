// The names of tensors in GGUF files.
#pragma once

#include <optional>
#include <string>

namespace holdfast::lm {

// The name that a tensor has in a Hugging Face folder, without "model." in front; none when the
// name is not known. With `sandwich_norms` "ffn_norm" is the norm before the feed-forward part
// only.
std::optional<std::string> name_of_gguf(const std::string& name, bool sandwich_norms);

}  // namespace holdfast::lm
