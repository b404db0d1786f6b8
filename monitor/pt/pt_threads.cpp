#include "monitor/pt/pt_threads.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/sample.h"

namespace tsomon {

using perf::Record;

uint64_t time_of(const Record& record) { return record.has_time() ? record.sample_id.time : 0; }

bool is_thread(uint32_t tid) { return tid != 0 && tid <= INT32_MAX; }

void PtThreads::see_time(const Record& record) {
  if (record.has_cpu() && time_of(record) != 0) {
    latest_[record.sample_id.cpu] = time_of(record);
  }
}

uint32_t PtThreads::process_of(uint32_t tid) const {
  const auto process = process_of_.find(tid);
  return process == process_of_.end() ? tid : process->second;
}

void PtThreads::schedule(const Record& record, bool out, uint32_t pid, uint32_t tid) {
  if (record.has_cpu()) {
    scheduled_[record.sample_id.cpu].push_back({time_of(record), out, pid, tid});
  }
}

void PtThreads::take_start(const Record& record) {
  const auto start = parse_itrace_start(record);
  if (!start || !is_thread(start->tid)) {
    return;
  }
  process_of_[start->tid] = start->pid;
  started_.insert(start->tid);
  if (time_of(record) != 0) {
    schedule(record, false, start->pid, start->tid);
  }
}

void PtThreads::take_switch(const Record& record) {
  const auto change = parse_switch(record);
  if (change && (record.sample_fields & perf::sample_type::kTid) != 0) {
    has_switches_ = true;
    schedule(record, change->out, record.sample_id.pid, record.sample_id.tid);
  }
}

bool PtThreads::take_scheduling(const perf::FileInfo& info, const perf::Attribute& attribute,
                                const Record& record) {
  const auto point = info.tracepoints.find(attribute.config);
  if (point == info.tracepoints.end() || !point->second.next_thread || !record.has_cpu()) {
    return false;
  }
  const auto sample = parse_sample(attribute, record);
  const size_t at = *point->second.next_thread;
  uint32_t next = 0;
  if (!sample || sample->raw.size() < at + sizeof next) {
    return false;
  }
  std::memcpy(&next, sample->raw.data() + at, sizeof next);
  const perf::SampleId& before = record.sample_id;
  if (is_thread(before.tid) && is_thread(before.pid)) {
    process_of_[before.tid] = before.pid;
  }
  auto& scheduled = of_tracepoints_[before.cpu];
  scheduled.push_back({time_of(record), true, before.pid, before.tid});
  if (next != 0) {
    scheduled.push_back({time_of(record), false, 0, next});
  }
  return true;
}

// Switches may be among what was lost since the record before: nobody is known to run.
void PtThreads::forget(const Record& record, ByCpu& scheduled) {
  for (auto& [cpu, all] : scheduled) {
    if (!record.has_cpu() || record.sample_id.cpu == cpu) {
      all.push_back({latest_[cpu], true, 0, 0});
    }
  }
}

void PtThreads::take_loss(const Record& record) {
  if (record.has_cpu()) {
    scheduled_[record.sample_id.cpu];
  } else {
    lost_anywhere_ = true;
  }
  forget(record, scheduled_);
  forget(record, of_tracepoints_);
}

void PtThreads::take_exit(const Record& record) {
  const auto task = parse_task(record);
  if (!task || !record.has_cpu()) {
    return;
  }
  const auto cpu = scheduled_.find(record.sample_id.cpu);
  if (cpu != scheduled_.end() && !cpu->second.back().out && cpu->second.back().tid == task->tid) {
    schedule(record, true, task->pid, task->tid);
  }
}

void PtThreads::take_switches_of_tracepoints() {
  if (has_switches_ || of_tracepoints_.empty()) {
    return;
  }
  has_switches_ = true;
  scheduled_ = std::move(of_tracepoints_);
  for (auto& [cpu, scheduled] : scheduled_) {
    for (Scheduled& item : scheduled) {
      if (const auto process = process_of_.find(item.tid); process != process_of_.end()) {
        item.pid = process->second;
      }
    }
  }
}

std::vector<pt::Switch> PtThreads::finish(const std::vector<pt::TraceStream>& streams,
                                          const ToTsc& tsc, std::vector<std::string>& problems) {
  take_switches_of_tracepoints();
  bool of_cpus = false;
  for (const pt::TraceStream& stream : streams) {
    if (stream.cpu < 0) {
      running_.insert(stream.process);
      continue;
    }
    if (stream.bytes.empty()) {
      continue;
    }
    of_cpus = true;
    if (!has_switches_) {
      assume_one_thread(stream.cpu, problems);
    } else {
      add_switches(stream.cpu, tsc);
    }
  }
  if (of_cpus && !tsc) {
    problems.emplace_back(
        "the clocks of trace and records cannot be converted: which thread ran is not known");
    switches_.clear();
  }
  std::stable_sort(
      switches_.begin(), switches_.end(),
      [](const pt::Switch& left, const pt::Switch& right) { return left.time < right.time; });
  return std::move(switches_);
}

void PtThreads::assume_one_thread(int cpu, std::vector<std::string>& problems) {
  if (started_.size() == 1 && process_of_.size() == 1) {
    add_switch(kTimeMin, cpu, process_of_.begin()->second, *started_.begin());
  } else {
    problems.push_back(
        fmt::format("CPU {}: which thread ran is not known (perf record --switch-events)", cpu));
  }
}

void PtThreads::add_switch(int64_t time, int cpu, uint32_t pid, uint32_t tid) {
  const bool thread = is_thread(tid) && is_thread(pid);
  switches_.push_back(
      {time, cpu, thread ? static_cast<int>(pid) : 0, thread ? static_cast<int>(tid) : 0});
  if (thread) {
    running_.insert(static_cast<int>(pid));
  }
}

void PtThreads::add_switches(int cpu, const ToTsc& tsc) {
  const auto all = scheduled_.find(static_cast<uint32_t>(cpu));
  if (all == scheduled_.end()) {
    return;
  }
  const Scheduled& first = all->second.front();
  if (first.out && !lost_anywhere_) {
    add_switch(kTimeMin, cpu, first.pid, first.tid);
  }
  for (const Scheduled& item : all->second) {
    const bool idle = item.out;
    add_switch(tsc ? tsc(item.time) : kTimeMin, cpu, idle ? 0 : item.pid, idle ? 0 : item.tid);
  }
}

}  // namespace tsomon
