// Loads of an atomic that a thread repeats while it waits for another one: the probe holds them
// back, and records what stands for them.
//
// Purpose     A thread that spins makes tens of millions of records a second which say nothing new.
//             Of a run of equal loads (the same instruction, bytes and value, nothing recorded
//             between) the first three are recorded as ever. What follows is only counted, until
//             something else is to be recorded, the value changes, or some 15 ms have passed. So a
//             thread that waits costs some ten records for each change of the value, and 600 a
//             second.
// Records     No more than others: the loads held back up to the last stamp that was taken become
//             one load, from the stamp that was recorded last to that one; then comes that stamp;
//             then those after it, three where there were more. Readers fold them further.
// Soundness   That one load stands for those between the first and the last of a run is argued in
//             decoders/capture/repeated_loads.h; its interval has those of all that it stands for,
//             and so has that of the middle one of three.
// Seen        Nothing of the thread's chunk changes while loads are held back. Who reads it then
//             adds them (copy_held): the writer thread at the end and for the parts that a killed
//             process leaves. For that all fits into one word, and a load is held back only where
//             its token is the same three bytes each time. Live, the thread promises nothing
//             meanwhile (chunk_writer.cpp).
// Signals     A handler that interrupts the thread has it record what is held back; while it does
//             so by itself what the handler records is lost, and counted. The word is changed by
//             one instruction, so what a handler did in between shows.
// Misses      Atomics with two stamps of their own (stamp_max_age=0). Compare-exchanges that fail, which
//             are fences: readers fold them.
// Cost        Of a load that is not repeated one comparison.
// Thread-safety: of the owner, and its handlers; copy_held() from any thread.
#pragma once

#include <cstdint>

namespace tsomon::probe {

struct Context;

struct Repeats {
  // The stamp that was taken last * 8, + 4 if there are loads before it, + how many came after it
  // (3: or more). 0: nothing is held back.
  volatile uint64_t word;
  // Of the loads at the end of what is recorded:
  uint64_t key;
  const volatile void* address;
  uint64_t value;
  uint64_t began;        // cycles, when the first one was held back
  uint32_t end;          // place in the chunk behind them; kNowhere: there are none
  uint32_t recorded;     // how many
  volatile bool ending;  // they are being recorded
};

// Around an atomic load by a mov. nullptr: it is not recorded.
Context* begin_load(uint64_t key, const volatile void* address);
// Returns the value.
uint64_t put_load(Context* context, uint64_t key, const volatile void* address, uint64_t value);

// Records what is held back.
void record_held(Context& context);

// The tokens for what is held back, behind those of the chunk up to `end`, where it stood when it
// was looked at; returns their size.
inline constexpr uint32_t kMostHeld = 24;
uint32_t copy_held(const Context& context, uint32_t end, uint8_t* to);

}  // namespace tsomon::probe
