// Damages a capture and judges what is left: damaged_captures FILE SEED COUNT.
//
// Of every kind of chunk one is damaged; then, COUNT times, some chunk or two are, by a flipped bit
// of the header, of the payload, or by being cut out, or the file is cut off. What is not violated as a
// whole is not violated then, nor is what is violated clean; nothing is predicted where nothing is of
// the whole; what is explained is what was found. Says how much still counted; exits with 1 where
// something is wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "monitor/check/check_input.h"
#include "monitor/explain/explain.h"
#include "monitor/predict/predict.h"

namespace {

using namespace tsomon;

struct Place {
  uint64_t begin;  // of the header
  uint64_t size;   // of the payload
};

enum class Way : uint8_t { kHeader, kPayload, kCutOut };

void damage(const Place& place, Way way, std::mt19937_64& random, std::string* bytes) {
  constexpr uint64_t kHeader = sizeof(capture::ChunkHeader);
  if (way == Way::kCutOut) {
    bytes->erase(place.begin, kHeader + place.size);
    return;
  }
  const uint64_t at = way == Way::kHeader || place.size == 0
                          ? place.begin + random() % kHeader
                          : place.begin + kHeader + random() % place.size;
  (*bytes)[at] = static_cast<char>((*bytes)[at] ^ static_cast<char>(1 << random() % 8));
}

template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
    std::exit(2);
  }
  return std::move(*result);
}

const std::vector<Property> kProperties = {Property::kSerializability, Property::kScSerializability,
                                           Property::kRobustness};

struct Verdicts {
  std::vector<Verdict> of_properties;
  Verdict of_sets = Verdict::kInconclusive;
  bool predicted = false;
  bool explained = false;
};

// Most of the time goes to the names of places: `all` is for some.
Verdicts judge(const std::string& path, const std::string& bytes, bool all) {
  std::ofstream(path, std::ios::binary) << bytes;
  std::vector<CheckOptions> questions(kProperties.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    questions[i].property = kProperties[i];
    questions[i].jobs = 1;
  }
  Verdicts verdicts;
  const auto checked = must(check_properties(path, InputFormat::kAuto, questions));
  for (const CheckReport& report : checked.reports) {
    verdicts.of_properties.push_back(report.verdict());
  }
  if (!all) {
    return verdicts;
  }
  CheckOptions sets = questions.front();
  sets.property = Property::kAtomicSets;
  verdicts.of_sets = must(check_input(path, InputFormat::kAuto, sets)).report.verdict();
  PredictOptions predict;
  predict.race.jobs = 1;
  verdicts.predicted = must(predict_input(path, InputFormat::kAuto, predict)).found();
  ExplainOptions explain;
  explain.check.jobs = 1;
  std::vector<ExplainedInput> inputs;
  inputs.push_back(must(read_for_explaining(path, explain)));
  verdicts.explained = must(explain_inputs(std::move(inputs), {}, explain)).violations() != 0;
  return verdicts;
}

class Comparison {
 public:
  Comparison(const std::string& file, const std::string& whole)
      : file_(file), expected_(judge(file + ".damaged", whole, true)) {}

  void compare(const std::string& bytes, const std::string& what) {
    const Verdicts found = judge(file_ + ".damaged", bytes, judged_++ % 8 == 0);
    for (size_t i = 0; i < kProperties.size(); ++i) {
      compare(found.of_properties[i], expected_.of_properties[i], kProperties[i], what);
    }
    compare(found.of_sets, expected_.of_sets, Property::kAtomicSets, what);
    if (found.predicted && !expected_.predicted) {
      wrong(what, "something is predicted");
    }
    if (found.explained && found.of_properties.front() != Verdict::kDefinite) {
      wrong(what, "something is explained");
    }
  }

  int result() const {
    std::fprintf(stderr, "%s: %d damaged captures, %d violations left, %d wrong\n", file_.c_str(),
                 judged_, counted_, wrong_);
    return wrong_ == 0 && judged_ != 0 ? 0 : 1;
  }

 private:
  void compare(Verdict verdict, Verdict whole, Property property, const std::string& what) {
    counted_ += verdict == Verdict::kDefinite ? 1 : 0;
    if (verdict != Verdict::kInconclusive && verdict != whole) {
      wrong(what, fmt::format("{}, the whole capture: {}", verdict_name(verdict, property),
                              verdict_name(whole, property)));
    }
  }
  void wrong(const std::string& what, const std::string& how) {
    ++wrong_;
    std::printf("%s: %s: %s\n", file_.c_str(), what.c_str(), how.c_str());
  }

  std::string file_;
  Verdicts expected_;
  int judged_ = 0;
  int counted_ = 0;
  int wrong_ = 0;
};

int damage_all(const std::string& file, uint64_t seed, int count) {
  std::ifstream input(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(input), {}};
  const auto list = capture::find_chunks(whole);
  if (!list || !list->damage.empty()) {
    std::fprintf(stderr, "%s: not a whole capture\n", file.c_str());
    return 2;
  }
  std::mt19937_64 random(seed);
  std::map<uint32_t, Place> kinds;
  std::vector<Place> all;
  for (const capture::Chunk& chunk : list->chunks) {
    all.push_back({chunk.offset, chunk.stored.size()});
    kinds[chunk.header.type] = all.back();
  }
  Comparison comparison(file, whole);
  for (const auto& [type, place] : kinds) {
    std::string bytes = whole;
    damage(place, Way::kPayload, random, &bytes);
    comparison.compare(bytes, fmt::format("a chunk of type {} at byte {}", type, place.begin));
  }
  for (int i = 0; i < count; ++i) {
    const Place one = all[random() % all.size()];
    const Place two = all[random() % all.size()];
    const auto way = [&] { return static_cast<Way>(random() % 3); };
    std::string bytes = whole;
    if (random() % 4 == 0) {
      bytes.resize(one.begin + random() % (sizeof(capture::ChunkHeader) + one.size));
      comparison.compare(bytes, fmt::format("cut off at byte {}", bytes.size()));
      continue;
    }
    damage(one, way(), random, &bytes);
    if (two.begin < one.begin && random() % 2 == 0) {  // what is cut out moves only what follows
      damage(two, way(), random, &bytes);
    }
    comparison.compare(bytes, fmt::format("chunks at bytes {} and maybe {}", one.begin, two.begin));
  }
  return comparison.result();
}

}  // namespace

int main(int argc, char** argv) {
  return argc == 4 ? damage_all(argv[1], std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]))
                   : 2;
}
