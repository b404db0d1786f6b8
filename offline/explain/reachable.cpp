#include "offline/explain/reachable.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::explain {

Reachable::Reachable(const RootCauseProblem& problem)
    : problem_(problem), count_(static_cast<uint32_t>(problem.accesses.size())) {
  for (const RootCauseProblem::Access& access : problem.accesses) {
    threads_ = std::max(threads_, access.thread + 1);
    buffered_ = buffered_ || !access.before_later || !access.after_earlier;
  }
  const bool pairs = buffered_ && count_ <= kMostPairs;
  exact_ = !buffered_ || pairs;
  words_ = pairs ? (count_ + 63) / 64 : 0;
  order_lines();
  add_edges();
  fill();
}

void Reachable::order_lines() {
  lines_.resize(threads_);
  for (uint32_t i = 0; i < count_; ++i) {
    lines_[problem_.accesses[i].thread].push_back(i);
  }
  place_.resize(count_);
  for (std::vector<uint32_t>& line : lines_) {
    std::sort(line.begin(), line.end(), [&](uint32_t a, uint32_t b) {
      return problem_.accesses[a].position < problem_.accesses[b].position;
    });
    for (uint32_t place = 0; place < line.size(); ++place) {
      place_[line[place]] = place;
    }
  }
}

void Reachable::add_edges() {
  conflicts_.resize(count_);
  for (const Edge& edge : problem_.conflicts) {
    spend(4);
    conflicts_[edge.from].push_back(edge.to);
  }
  next_.resize(size_t{3} * count_);
  for (const std::vector<uint32_t>& line : lines_) {
    for (size_t place = 0; place < line.size(); ++place) {
      spend(8);
      const uint32_t access = line[place];
      next_[all_after(access)].push_back(access);
      if (problem_.accesses[access].after_earlier) {
        next_[stores_after(access)].push_back(access);
      }
      if (place + 1 == line.size()) {
        continue;
      }
      next_[all_after(access)].push_back(all_after(line[place + 1]));
      next_[stores_after(access)].push_back(stores_after(line[place + 1]));
      if (problem_.accesses[access].before_later) {
        next_[access].push_back(all_after(line[place + 1]));
        continue;
      }
      next_[access].push_back(stores_after(line[place + 1]));
      for (size_t later = place + 1; words_ != 0 && problem_.ordered && later < line.size();
           ++later) {
        const RootCauseProblem::Access& other = problem_.accesses[line[later]];
        if (other.after_earlier && other.before_later) {
          break;  // what follows comes after it
        }
        spend(4);
        if (!other.after_earlier && problem_.ordered(access, line[later])) {
          next_[access].push_back(line[later]);
        }
      }
    }
  }
}

void Reachable::start(Table* table) const {
  const size_t nodes = size_t{3} * count_;
  expect_bytes(nodes * (threads_ * 3 * sizeof(uint32_t) + words_ * sizeof(uint64_t)));
  table->first.assign(nodes * threads_, kNever);
  table->all.assign(nodes * threads_, kNever);
  table->stores.assign(buffered_ ? nodes * threads_ : 0, kNever);
  table->pairs.assign(nodes * words_, 0);
}

void Reachable::join(Table* to, uint32_t node, const Table& from, uint32_t other) const {
  spend(threads_ + words_ / 4);
  for (size_t thread = 0; thread < threads_; ++thread) {
    const size_t mine = size_t{node} * threads_ + thread;
    const size_t theirs = size_t{other} * threads_ + thread;
    to->first[mine] = std::min(to->first[mine], from.first[theirs]);
    to->all[mine] = std::min(to->all[mine], from.all[theirs]);
    if (buffered_) {
      to->stores[mine] = std::min(to->stores[mine], from.stores[theirs]);
    }
  }
  for (size_t word = 0; word < words_; ++word) {
    to->pairs[node * words_ + word] |= from.pairs[other * words_ + word];
  }
}

void Reachable::set(Table* table, uint32_t node, uint32_t access) const {
  const RootCauseProblem::Access& at = problem_.accesses[access];
  const size_t index = size_t{node} * threads_ + at.thread;
  const uint32_t place = place_[access];
  table->first[index] = std::min(table->first[index], place);
  if (at.before_later) {
    table->all[index] = std::min(table->all[index], place);
  }
  if (buffered_ && at.after_earlier) {
    table->stores[index] = std::min(table->stores[index], place);
  }
  if (words_ != 0) {
    table->pairs[node * words_ + access / 64] |= uint64_t{1} << (access % 64);
  }
}

// Nodes after all that they lead to.
void Reachable::fill() {
  const uint32_t nodes = 3 * count_;
  std::vector<std::vector<uint32_t>> before(nodes);
  std::vector<uint32_t> open(nodes, 0);
  const auto add = [&](uint32_t from, uint32_t to) {
    before[to].push_back(from);
    ++open[from];
  };
  for (uint32_t node = 0; node < nodes; ++node) {
    for (const uint32_t to : next_[node]) {
      add(node, to);
    }
    for (size_t i = 0; node < count_ && i < conflicts_[node].size(); ++i) {
      add(node, conflicts_[node][i]);
    }
  }
  start(&reached_);
  start(&through_);
  std::vector<uint32_t> ready;
  for (uint32_t node = 0; node < nodes; ++node) {
    if (open[node] == 0) {
      ready.push_back(node);
    }
  }
  for (size_t done = 0; done < ready.size(); ++done) {
    const uint32_t node = ready[done];
    for (const uint32_t to : next_[node]) {
      join(&reached_, node, reached_, to);
      join(&through_, node, through_, to);
    }
    if (node < count_) {
      set(&reached_, node, node);
      for (const uint32_t to : conflicts_[node]) {
        join(&reached_, node, reached_, to);
        join(&through_, node, reached_, to);
      }
    }
    for (const uint32_t from : before[node]) {
      if (--open[from] == 0) {
        ready.push_back(from);
      }
    }
  }
  cyclic_ = ready.size() < nodes;
}

bool Reachable::has(const Table& table, uint32_t from, uint32_t to) const {
  if (words_ != 0) {
    return (table.pairs[from * words_ + to / 64] >> (to % 64) & 1) != 0;
  }
  const RootCauseProblem::Access& at = problem_.accesses[to];
  const size_t index = size_t{from} * threads_ + at.thread;
  return place_[to] >= table.all[index] ||
         (buffered_ && at.after_earlier && place_[to] >= table.stores[index]);
}

}  // namespace tsomon::explain
