// The architectures: a row for each, with what its config.json leaves unsaid.
#pragma once

#include <string>

#include <holdfast/lm/config.h>

namespace holdfast::lm {

struct Architecture {
  const char* name;       // `model_type` in config.json
  const char* gguf_name;  // `general.architecture` in GGUF; null: not known there
  // What Config calls it …
  bool query_bias = false, query_norm = false, output_gate = false;
  bool sandwich_norms = false, offset_norms = false, scaled_embeddings = false;
  Activation activation = Activation::silu;
  bool tied_embeddings = false;  // when config.json does not say
  // … and how its files are read.
  int full_attention_interval = 0;  // every so many layers attend to everything; 0: all do
  Mixer other_layers = Mixer::full_attention;
  float rotated_part = 1.0f;      // of a head's features, when config.json does not say
  bool traditional_gguf = false;  // GGUF files have pairs as neighbours
  float local_rope_base = 0.0f;   // of sliding attention; 0: that of full attention
};

// Null when there is none of that name.
const Architecture* find_architecture(const std::string& name);
const Architecture* find_gguf_architecture(const std::string& gguf_name);
// "a, b and c", for messages.
std::string architecture_list();

}  // namespace holdfast::lm
