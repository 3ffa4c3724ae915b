#include "exec/layers/validation/validator.h"

#include <cstdio>
#include <cstdlib>

#include "base/environment.h"
#include "exec/layers/validation/messages.h"
#include "exec/queue.h"

namespace holdfast::validation {

std::atomic<size_t> Validator::live_buffer_limit{499000};

Validator::Validator(const Options& options, const std::string& checks_name,
                     const std::string& ignore_name)
    : checks_(CheckSet::parse(options.checks, checks_name)), reporter_(options, ignore_name) {}

namespace {

Ref<exec::Failure> failure_of(const Report& report) {
  ValidationError error(report);
  return make_ref<exec::Failure>(std::make_exception_ptr(error), error.what());
}

}  // namespace

void Validator::deliver(const Reports& reports) {
  if (Ref<exec::Failure> failure = deliver_to_command(reports)) failure->raise();
}

void Validator::deliver_later(const Reports& reports, const DeviceQueue* queue) {
  for (const Report& report : reports) {
    if (reporter_.take(report) && queue)
      static_cast<exec::Queue*>(queue->owner)->remember(failure_of(report));
  }
}

Ref<exec::Failure> Validator::deliver_to_command(const Reports& reports) {
  Ref<exec::Failure> first;
  for (const Report& report : reports) {
    if (reporter_.take(report) && !first) first = failure_of(report);
  }
  return first;
}

void Validator::on_create(const Buffer& buffer) {
  Reports reports;
  {
    std::lock_guard guard(mutex_);
    const exec::Storage& storage = *buffer.storage();
    auto address = reinterpret_cast<uintptr_t>(storage.address);
    Region& region = region_for(address, address + std::max<size_t>(storage.capacity, 1),
                                storage.adopted, guard);
    ++region.live;
    region.newest = buffer.identity();
    BufferRecord& record = buffers_[buffer.identity()];
    record.identity = buffer.identity();
    record.size = buffer.size();
    record.op = buffer.op();
    record.label = buffer.label();
    record.address = address;
    record.region = &region;
    record.number = ++made_buffers_;
    record.is_written = record.has_numbers = buffer.stream() < 0;
    size_t limit = live_buffer_limit.load(std::memory_order_relaxed);
    if (checks_.has(Check::resources) && buffers_.size() > limit) {
      reports.push_back(messages::live_buffers(record, buffers_.size(), limit));
    }
  }
  deliver_later(reports);
}

void Validator::on_command(const CommandList& list) {
  Reports reports;
  {
    std::lock_guard guard(mutex_);
    queue_of(list, guard).seen = static_cast<uint32_t>(list.commands.size());
    const Command& command = list.commands.back();
    Seen seen{list, command, side_of(list, command, guard),
              std::span(list.bindings).subspan(command.first_binding, command.binding_count)};
    queues_[list.queue].newest = seen.side;
    if (checks_.has(Check::lifetime) || checks_.has(Check::bindings))
      note_uses(seen, reports, guard);
    if (checks_.has(Check::kernels)) note_writes(seen, guard);
    if (checks_.has(Check::host_writes)) take_digests(seen, guard);
    // Digests need to know who writes.
    Reports unwanted;
    if (checks_.has(Check::hazards) || checks_.has(Check::host_writes)) {
      check_hazards(seen, checks_.has(Check::hazards) ? reports : unwanted, guard);
    }
    if (checks_.has(Check::bindings)) check_bindings(seen, reports, guard);
    if (checks_.has(Check::resources)) check_limits(seen, reports, guard);
  }
  deliver(reports);
}

void Validator::on_encode(const CommandList& list) {
  Reports reports;
  {
    std::lock_guard guard(mutex_);
    QueueRecord& queue = queue_of(list, guard);
    reports.swap(queue.pending);
    queue.last = queue.newest;
    if (checks_.has(Check::ownership)) check_ownership(list, queue, reports, guard);
    queue.encoded_buffers = made_buffers_;
    queue.encoded = static_cast<uint32_t>(list.commands.size());
  }
  deliver(reports);
}

void Validator::on_commit(CommandList& list) {
  std::lock_guard guard(mutex_);
  if (checks_.has(Check::nan)) watch_origins(list, guard);
  auto found = queues_.find(list.queue);
  if (found == queues_.end() || found->second.open != list.serial) return;
  QueueRecord& queue = found->second;
  queue.open = 0;
  queue.pending.clear();
  // An op that threw: the list has none of its commands any more.
  uint32_t left = static_cast<uint32_t>(list.commands.size());
  if (left < queue.seen) forget_commands(list.queue, list.serial, left, guard);
}

// --- scopes and the environment ---

namespace {

// One scope at a time.
std::atomic<bool> has_scope{false};

Mode parse_mode(const std::string& text) {
  if (text.empty() || text == "report") return Mode::report;
  if (text == "throw") return Mode::throw_error;
  if (text == "abort") return Mode::abort;
  throw std::invalid_argument(
      "[validation] HOLDFAST_VALIDATE_MODE must be report, throw or abort, got \"" + text + "\"");
}

}  // namespace

struct Scope::State {
  std::shared_ptr<Validator> validator;
};

Scope::Scope(Options options) {
  auto validator = std::make_shared<Validator>(options, "Options::checks", "Options::ignore");
  if (has_scope.exchange(true)) {
    throw std::logic_error(
        "[validation] there is a validation scope already; one sees the whole process");
  }
  try {
    state_ = std::make_unique<State>(State{validator});
    exec::layers::add(std::move(validator));
  } catch (...) {
    has_scope = false;
    throw;
  }
}

Scope::~Scope() {
  exec::layers::remove(state_->validator.get());
  has_scope = false;
}

void Scope::check_left_over() { state_->validator->on_exit(); }

std::vector<Report> Scope::reports() const { return state_->validator->reporter().reports(); }

void start_from_environment() {
  static std::shared_ptr<Validator> validator;
  if (validator) return;
  const environment::Settings& settings = environment::settings();
  Options options;
  options.checks = settings.validate;
  options.mode = parse_mode(settings.validate_mode);
  options.ignore = settings.validate_ignore;
  options.json = settings.validate_json;
  options.print = true;
  // Values that nobody could mean are refused where they have no effect, too.
  parse_identifiers(options.ignore, "HOLDFAST_VALIDATE_IGNORE");
  if (settings.validate.empty() || settings.validate == "0") return;
  validator = std::make_shared<Validator>(options, "HOLDFAST_VALIDATE", "HOLDFAST_VALIDATE_IGNORE");
  exec::layers::add(validator);
  std::atexit([] {
    std::string summary = validator->reporter().summary();
    std::fputs(summary.c_str(), stderr);
  });
}

}  // namespace holdfast::validation
