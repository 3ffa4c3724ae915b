// Language models: loading, generating text, many generations at once.
//
// A library of its own, holdfast::lm, made of Holdfast's public API alone.
#pragma once

#include <holdfast/lm/chat_template.h>
#include <holdfast/lm/config.h>
#include <holdfast/lm/engine.h>
#include <holdfast/lm/errors.h>
#include <holdfast/lm/model.h>
#include <holdfast/lm/sampling.h>
#include <holdfast/lm/tokenizer.h>
