// Recurrences over the tokens of many sequences, each with a state of its own.
#pragma once

namespace holdfast {
class array;
}

namespace holdfast::kernels {

// Tokens are (sequences, tokens, ...), or (all tokens, ...) with `starts`. Null where there is
// none.
struct SequenceInputs {
  int sequences;
  const array* starts;  // (sequences + 1) of int32
  const array* slots;   // (sequences) of int32: rows of the states, no state where negative
  const array* fresh;   // (sequences) of bool: begins with zeros
  const array* mask;    // one bool for each token: where false, the result is 0 and the state stays
};

// All of one type, but decay and beta, which are float32. Key heads are shared by neighbours.
struct DeltaInputs {
  const array &queries, &keys;  // (..., key heads, key dims)
  const array& values;          // (..., value heads, value dims)
  const array& decay;           // (..., value heads), or (..., value heads, key dims)
  const array& beta;            // (..., value heads)
  SequenceInputs sequences;
};

struct ConvInputs {
  const array& x;       // (..., channels)
  const array& weight;  // (channels, width) of float32
  const array* bias;    // (channels) of float32, or null
  SequenceInputs sequences;
};

}  // namespace holdfast::kernels
