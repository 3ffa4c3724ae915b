#include "lm/engine/loop.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <holdfast/errors.h>
#include <holdfast/eval.h>
#include <holdfast/ops.h>

#include <holdfast/lm/errors.h>

#include "lm/support.h"

namespace holdfast::lm::engine {
namespace {

// A step that fails is computed again; a sequence that was in so many of them fails.
constexpr int most_failed_steps = 3;

void need(bool holds, const std::string& what) {
  if (!holds) throw RequestError(what);
}

CacheOptions cache_options(const Model& model, const EngineOptions& options) {
  auto check = [](bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument("[lm::Engine] " + what);
  };
  check(options.batch > 0, message("batch must be at least 1, got ", options.batch));
  check(options.queue > 0, message("queue must be at least 1, got ", options.queue));
  check(options.prefill_tokens > 0,
        message("prefill_tokens must be at least 1, got ", options.prefill_tokens));
  check(options.cache_tokens > 0,
        message("cache_tokens must be at least 1, got ", options.cache_tokens));
  int size = options.block_size;
  check(size >= 16 && size <= 256 && (size & (size - 1)) == 0,
        message("block_size must be a power of two from 16 to 256, got ", size));
  CacheOptions cache{.blocks = (options.cache_tokens + size - 1) / size,
                     .block_size = size,
                     .states = options.batch,
                     .scheme = options.cache_scheme,
                     .protects_edges = options.protects_edges};
  if (options.cache_bytes > 0) {
    size_t states = Cache::state_bytes(model) * static_cast<size_t>(options.batch);
    size_t block = std::max<size_t>(1, Cache::block_bytes(model, cache));
    check(options.cache_bytes > states && options.cache_bytes - states >= block,
          message("cache_bytes (", options.cache_bytes, ") must hold the states of ", options.batch,
                  " sequences (", states, " bytes) and a block (", block, " bytes)"));
    size_t blocks = (options.cache_bytes - states) / block;
    cache.blocks = static_cast<int>(std::min(static_cast<size_t>(cache.blocks), blocks));
  }
  return cache;
}

uint64_t new_seed() {
  static std::atomic<uint64_t> counter{std::random_device{}()};
  return counter.fetch_add(0x9e3779b97f4a7c15u);
}

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Loop::Loop(std::shared_ptr<const Model> model, std::optional<Tokenizer> tokenizer,
           const EngineOptions& options)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      options_(options),
      cache_(*model_, cache_options(*model_, options)),
      scheduler_(options, cache_.options().blocks, model_->config().has(Mixer::delta_net),
                 model_->config().count(Mixer::delta_net) <
                     static_cast<int>(model_->config().layers.size()),
                 options.steady.value_or(options.batch >= model_->steady_tokens())
                     ? model_->steady_tokens()
                     : 0) {
  request_limit_ = static_cast<size_t>(cache_.options().blocks) *
                   static_cast<size_t>(cache_.options().block_size);
  auto lower = [&](int limit) {
    if (limit > 0) request_limit_ = std::min(request_limit_, static_cast<size_t>(limit));
  };
  lower(options.request_tokens);
  lower(model_->config().most_positions);
  publish_metrics();
  thread_ = std::thread([this] { run(); });
}

Loop::~Loop() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// --- requests ---

std::unique_ptr<Sequence> Loop::checked(Request request) const {
  const int vocabulary = model_->config().vocabulary;
  if (request.tokens.empty() && !request.prompt.empty()) {
    need(tokenizer_.has_value(), "a prompt that is text needs an engine with a tokenizer");
    request.tokens = tokenizer_->encode(request.prompt);
  }
  need(!request.tokens.empty(), "the prompt is empty");
  for (int token : request.tokens) {
    need(token >= 0 && token < vocabulary,
         message("the prompt's tokens must be from 0 to ", vocabulary - 1, ", got ", token));
  }
  need(request.max_tokens > 0, message("max_tokens must be at least 1, got ", request.max_tokens));
  size_t all = request.tokens.size() + static_cast<size_t>(request.max_tokens);
  need(all <= request_limit_,
       message("the prompt's ", request.tokens.size(), " tokens and max_tokens (",
               request.max_tokens, ") are more than the ", request_limit_,
               " that this engine has for a request"));
  request.sampling.check(vocabulary);
  need(request.stop.empty() || tokenizer_, "stop texts need an engine with a tokenizer");

  auto sequence = std::make_unique<Sequence>();
  sequence->seed = request.sampling.seed ? *request.sampling.seed : new_seed();
  sequence->tokens = request.tokens;
  sequence->tokens.reserve(all);
  sequence->prompt_size = request.tokens.size();
  if (tokenizer_) sequence->detokenizer.emplace(*tokenizer_);
  if (!request.stop.empty()) sequence->stops.emplace(request.stop);
  sequence->request = std::move(request);
  sequence->channel = std::make_shared<Channel>();
  return sequence;
}

std::shared_ptr<Channel> Loop::submit(Request request) {
  std::unique_ptr<Sequence> sequence = checked(std::move(request));
  std::shared_ptr<Channel> channel = sequence->channel;
  {
    std::lock_guard lock(mutex_);
    size_t queued = inbox_.size() + static_cast<size_t>(metrics_.queued);
    if (queued >= static_cast<size_t>(options_.queue)) {
      ++refused_;
      throw RequestError(
          message("the queue is full: ", queued, " requests wait; try again when some have ended"));
    }
    sequence->number = ++requests_;
    inbox_.push_back(std::move(sequence));
  }
  changed_.notify_all();
  return channel;
}

Metrics Loop::metrics() const {
  std::lock_guard lock(mutex_);
  Metrics metrics = metrics_;
  metrics.queued += static_cast<int>(inbox_.size());
  metrics.requests = requests_;
  metrics.refused = refused_;
  return metrics;
}

void Loop::publish_metrics() {
  scheduler_.count(counted_);
  std::lock_guard lock(mutex_);
  metrics_ = counted_;
}

// --- the thread ---

void Loop::run() {
  std::optional<StreamContext> stream;
  if (!std::holds_alternative<std::monostate>(options_.stream)) stream.emplace(options_.stream);
  while (receive()) {
    try {
      step();
    } catch (const std::exception& error) {
      fail_all(error.what());
    }
    publish_metrics();
  }
  fail_all("the engine was closed before the request had ended");
}

bool Loop::receive() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closing_ || !inbox_.empty() || !scheduler_.is_idle(); });
  std::vector<std::unique_ptr<Sequence>> received = std::move(inbox_);
  inbox_.clear();
  metrics_.queued += static_cast<int>(received.size());
  bool goes_on = !closing_;
  lock.unlock();
  for (auto& sequence : received) scheduler_.add(std::move(sequence));
  return goes_on;
}

void Loop::step() {
  for (auto& sequence : scheduler_.take_cancelled()) end(*sequence, Finish::cancelled);
  Plan plan = scheduler_.plan();
  publish_metrics();  // who waits is known before anybody hears of this step
  if (plan.parts.empty()) return;
  auto begin = Channel::Clock::now();
  std::vector<int> likeliest;
  std::vector<float> logits;
  ++counted_.steps;
  try {
    compute(plan, likeliest, logits);
  } catch (const std::exception& error) {
    recover(plan, error.what());
    return;
  }
  scheduler_.advance(plan);
  for (const Plan::Part& part : plan.parts) {
    if (part.sequence->generated() == 0)
      counted_.prompt_tokens += static_cast<uint64_t>(part.tokens);
    if (part.output < 0) continue;
    Sequence& sequence = *part.sequence;
    auto row = static_cast<size_t>(part.output);
    Choice choice;
    try {
      if (logits.empty()) {
        choice.token = likeliest[row];
        need(choice.token >= 0, "the model's logits are not finite");
      } else {
        size_t size = static_cast<size_t>(model_->config().vocabulary);
        choice = choose({logits.data() + row * size, size}, sequence.request.sampling,
                        sequence.seed, sequence.tokens, sequence.prompt_size);
      }
      deliver(sequence, choice);
    } catch (const std::exception& error) {
      finish(sequence, Finish::failed, error.what());
    }
  }
  counted_.busy += Channel::Clock::now() - begin;
}

void Loop::compute(const Plan& plan, std::vector<int>& likeliest, std::vector<float>& logits) {
  array result = model_->forward(plan.step, cache_);
  std::vector<array> wanted = cache_.arrays();
  if (plan.step.outputs.empty()) {
    eval(std::move(wanted));
    return;
  }
  bool needs_logits = std::any_of(plan.parts.begin(), plan.parts.end(), [](const auto& part) {
    return part.output >= 0 && part.sequence->request.sampling.needs_logits();
  });
  if (needs_logits) {
    wanted.push_back(result);
    eval(std::move(wanted));
    const auto* values = std::as_const(result).data<float>();
    logits.assign(values, values + result.size());
    return;
  }
  array best = astype(argmax(result, -1), int32), highest = max(result, -1);
  wanted.push_back(best);
  wanted.push_back(highest);
  eval(std::move(wanted));
  const auto* tokens = std::as_const(best).data<int32_t>();
  const auto* values = std::as_const(highest).data<float>();
  for (size_t i = 0; i < best.size(); ++i)
    likeliest.push_back(std::isfinite(values[i]) ? tokens[i] : -1);
}

void Loop::recover(const Plan& plan, const std::string& error) {
  ++counted_.failed_steps;
  std::vector<Sequence*> hopeless;
  for (const Plan::Part& part : plan.parts) {
    if (part.sequence->failed_steps + 1 >= most_failed_steps) hopeless.push_back(part.sequence);
  }
  bool lost = cache_.repair();  // when this fails, all requests do
  scheduler_.restart(plan, lost);
  for (auto& sequence : scheduler_.take_waiting(hopeless))
    end(*sequence, Finish::failed, "the model could not be computed: " + error);
}

void Loop::deliver(Sequence& sequence, const Choice& choice) {
  const Request& request = sequence.request;
  ++counted_.generated_tokens;
  sequence.failed_steps = 0;
  bool is_end = contains(model_->config().end_tokens, choice.token) ||
                (tokenizer_ && tokenizer_->is_eos(choice.token));
  if (is_end && !request.ignores_end) return finish(sequence, Finish::end_token);
  if (contains(request.stop_tokens, choice.token)) return finish(sequence, Finish::stop);
  sequence.tokens.push_back(choice.token);
  Piece piece{choice.token, {}, choice.logprob, choice.likeliest};
  if (sequence.detokenizer) piece.text = sequence.detokenizer->add(choice.token);
  if (sequence.stops) piece.text = sequence.stops->add(piece.text);
  bool stops = sequence.stops && sequence.stops->found();
  sequence.channel->push(std::move(piece));
  if (stops) return finish(sequence, Finish::stop);
  if (sequence.generated() == static_cast<size_t>(request.max_tokens))
    finish(sequence, Finish::length);
}

void Loop::finish(Sequence& sequence, Finish finish, const std::string& error) {
  std::unique_ptr<Sequence> removed = scheduler_.remove(&sequence);
  end(*removed, finish, error);
}

void Loop::end(Sequence& sequence, Finish finish, const std::string& error) {
  ++(finish == Finish::cancelled ? counted_.cancelled
     : finish == Finish::failed  ? counted_.failed
                                 : counted_.finished);
  try {
    if (finish != Finish::failed && finish != Finish::cancelled && sequence.detokenizer) {
      std::string text = sequence.detokenizer->finish();
      if (sequence.stops) {
        text = sequence.stops->add(text);
        text += sequence.stops->finish();
      }
      if (!text.empty()) sequence.channel->push({-1, text, 0.0f, {}});
    }
    sequence.channel->end(finish, error);
  } catch (const std::exception&) {  // no memory for the text, nor for a message
    sequence.channel->end(Finish::failed);
  }
}

void Loop::fail_all(const std::string& error) {
  for (auto& sequence : scheduler_.take_all()) end(*sequence, Finish::failed, error);
}

}  // namespace holdfast::lm::engine
