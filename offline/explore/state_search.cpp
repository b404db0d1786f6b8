#include "offline/explore/state_search.h"

namespace tsomon::explore {

bool StateSearch::go_on() {
  while (!path_.empty()) {
    if (path_.back() == tree_->choices().size()) {
      path_.pop_back();
      if (!path_.empty()) {
        tree_->back();
      }
      continue;
    }
    tree_->take(path_.back()++);
    if (visited_.insert(tree_->key()).second) {
      path_.push_back(0);
      return true;
    }
    tree_->back();
  }
  return false;
}

const Run* StateSearch::next() {
  while (!done_) {
    if (tree_ == nullptr) {
      tree_ = std::make_unique<StepTree>(program_, model_, judged_, contended_);
      tree_->begin();
      visited_.clear();
      path_ = {0};
    } else if (!go_on()) {
      break;
    }
    const bool is_leaf = tree_->choices().empty();
    leaf_ = tree_->shared_run();
    if (tree_->ended()) {
      done_ = true;
      return leaf_.get();
    }
    if (tree_->changed()) {
      contended_ = tree_->contended();
      tree_.reset();
    } else if (is_leaf) {
      return leaf_.get();
    }
  }
  done_ = true;
  return nullptr;
}

}  // namespace tsomon::explore
