#include "offline/explore/real_time_orders.h"

#include <map>

#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

class OrderSearch {
 public:
  OrderSearch(const Graph& graph, Model model, const std::vector<CallMoment>& moments,
              uint64_t most, const std::function<bool(const std::vector<uint32_t>&)>& visit)
      : moments_(moments), most_(most), visit_(visit), taken_(moments.size(), false) {
    std::vector<uint32_t> events;
    std::vector<uint32_t> row_of(moments.size(), 0);
    for (size_t m = 0; m < moments.size(); ++m) {
      if (moments[m].event != CallMoment::kAtFirst) {
        row_of[m] = static_cast<uint32_t>(events.size());
        events.push_back(moments[m].event);
      }
    }
    const auto before = executed_before(graph, model, events);
    before_.assign(moments.size(), std::vector<bool>(moments.size(), false));
    for (size_t a = 0; a < moments.size(); ++a) {
      for (size_t b = 0; b < moments.size(); ++b) {
        const bool same = moments[a].thread == moments[b].thread;
        const bool a_first = moments[a].event == CallMoment::kAtFirst;
        const bool b_first = moments[b].event == CallMoment::kAtFirst;
        before_[a][b] = same      ? a < b
                        : a_first ? !b_first
                                  : !b_first && before[row_of[a]][row_of[b]];
      }
    }
  }

  OrdersEnd run() {
    extend();
    return end_;
  }

 private:
  // Whether nothing that was not taken has to precede; `returns`: no return.
  bool is_next(size_t moment, bool returns) const {
    if (taken_[moment] || !moments_[moment].returns) {
      return false;
    }
    for (size_t other = 0; other < moments_.size(); ++other) {
      if (other != moment && !taken_[other] && (!returns || moments_[other].returns) &&
          before_[other][moment]) {
        return false;
      }
    }
    return true;
  }

  void take(size_t moment) {
    taken_[moment] = true;
    order_.push_back(static_cast<uint32_t>(moment));
  }

  // The calls that have to precede in an order that they have among themselves, then the moment.
  void take_with_calls(size_t moment) {
    for (bool any = true; any;) {
      any = false;
      for (size_t call = 0; call < moments_.size(); ++call) {
        if (taken_[call] || moments_[call].returns || !before_[call][moment]) {
          continue;
        }
        bool first = true;
        for (size_t other = 0; other < moments_.size(); ++other) {
          first = first && (taken_[other] || !before_[other][call]);
        }
        if (first) {
          take(call);
          any = true;
        }
      }
    }
    take(moment);
  }

  void give_back(size_t size) {
    while (order_.size() > size) {
      taken_[order_.back()] = false;
      order_.pop_back();
    }
  }

  void extend() {
    spend(moments_.size() * moments_.size());
    const size_t size = order_.size();
    // A return that nothing keeps back is in front of all others in the orders with most pairs.
    for (size_t moment = 0; moment < moments_.size(); ++moment) {
      if (is_next(moment, false)) {
        take(moment);
        extend();
        return give_back(size);
      }
    }
    bool any = false;
    for (size_t moment = 0; moment < moments_.size() && end_ == OrdersEnd::kAll; ++moment) {
      if (is_next(moment, true)) {
        any = true;
        take_with_calls(moment);
        extend();
        give_back(size);
      }
    }
    if (!any && end_ == OrdersEnd::kAll) {
      finish();
    }
  }

  // Calls that do not return come last.
  void finish() {
    if (visited_ == most_) {
      end_ = OrdersEnd::kBound;
      return;
    }
    ++visited_;
    const size_t size = order_.size();
    for (size_t moment = 0; moment < moments_.size(); ++moment) {
      if (!taken_[moment]) {
        take_with_calls(moment);
      }
    }
    if (!visit_(order_)) {
      end_ = OrdersEnd::kStopped;
    }
    give_back(size);
  }

  const std::vector<CallMoment>& moments_;
  const uint64_t most_;
  const std::function<bool(const std::vector<uint32_t>&)>& visit_;
  std::vector<std::vector<bool>> before_;
  std::vector<bool> taken_;
  std::vector<uint32_t> order_;
  uint64_t visited_ = 0;
  OrdersEnd end_ = OrdersEnd::kAll;
};

}  // namespace

std::vector<CallMoment> call_moments(const Graph& graph, const std::vector<Mark>& marks) {
  std::map<uint16_t, std::vector<CallMoment>> threads;
  for (const Mark& mark : marks) {
    if (mark.kind != MarkKind::kCall && mark.kind != MarkKind::kReturn) {
      continue;
    }
    CallMoment moment{mark.thread, mark.kind == MarkKind::kReturn, mark.value,
                      CallMoment::kAtFirst};
    moment.event = event_before(graph, mark).value_or(CallMoment::kAtFirst);
    threads[mark.thread].push_back(moment);
  }
  std::vector<CallMoment> moments;
  for (const auto& [thread, own] : threads) {
    moments.insert(moments.end(), own.begin(), own.end());
  }
  return moments;
}

OrdersEnd for_each_order(const Graph& graph, Model model, const std::vector<CallMoment>& moments,
                         uint64_t most,
                         const std::function<bool(const std::vector<uint32_t>& order)>& visit) {
  return OrderSearch(graph, model, moments, most, visit).run();
}

std::vector<Choice> schedule_of_order(const Graph& graph, Model model,
                                      const std::vector<CallMoment>& moments,
                                      const std::vector<uint32_t>& order) {
  std::vector<uint32_t> events;
  for (const uint32_t moment : order) {
    if (moments[moment].event != CallMoment::kAtFirst) {
      events.push_back(moments[moment].event);
    }
  }
  std::vector<Choice> schedule;
  linearize(graph, model, &schedule, events);
  return schedule;
}

}  // namespace tsomon::explore
