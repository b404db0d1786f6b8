// A list of which the first elements lie in the object itself, for many short lists that are read
// in no foreseeable order: the list and its elements come with one access to memory.
//
// Complexity  As std::vector. Moving copies the elements in place.
// Memory      That of kInline elements; more elements are in one block, which stays until the list
//             is destroyed, assigned to or shrunk.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace tsomon {

template <typename T, uint32_t kInline>
class InlineList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineList() = default;
  InlineList(InlineList&& other) noexcept
      : more_(std::move(other.more_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, kInline)),
        first_(other.first_) {}
  InlineList& operator=(InlineList&& other) noexcept {
    more_ = std::move(other.more_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kInline);
    first_ = other.first_;
    return *this;
  }
  InlineList(const InlineList&) = delete;
  InlineList& operator=(const InlineList&) = delete;
  ~InlineList() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return more_ != nullptr ? more_.get() : first_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return more_ != nullptr ? more_.get() : first_.data(); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }

  // One more element, with any value: it is to be assigned. Invalidates pointers.
  T& add() {
    if (size_ == capacity_) {
      grow();
    }
    return begin()[size_++];
  }
  // The element after the first `size`, with any value: it is to be assigned, and the last one
  // then. Requires size <= size() and size < kInline.
  T& put(size_t size) {
    size_ = static_cast<uint32_t>(size + 1);
    return begin()[size];
  }
  // Back into the object, if the elements are few enough. Invalidates pointers.
  void shrink() {
    if (more_ != nullptr && size_ <= kInline) {
      std::copy(more_.get(), more_.get() + size_, first_.begin());
      more_.reset();
      capacity_ = kInline;
    }
  }
  // Requires size <= size(): the elements after the first `size` go.
  void truncate(size_t size) { size_ = static_cast<uint32_t>(size); }
  // Visits each element once, in order; returns how many went.
  template <typename Goes>
  size_t erase_if(const Goes& goes) {
    T* const kept = std::remove_if(begin(), end(), goes);
    const auto gone = static_cast<size_t>(end() - kept);
    size_ -= static_cast<uint32_t>(gone);
    return gone;
  }

 private:
  void grow() {
    std::unique_ptr<T[]> larger(new T[size_t{2} * capacity_]);
    std::copy(begin(), end(), larger.get());
    more_ = std::move(larger);
    capacity_ *= 2;
  }

  std::unique_ptr<T[]> more_;  // all elements, once there were more than kInline
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  std::array<T, kInline> first_{};
};

}  // namespace tsomon
