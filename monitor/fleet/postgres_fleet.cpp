#include "monitor/fleet/postgres_fleet.h"

#include <utility>

#include <fmt/format.h>

#include "monitor/fleet/postgres.h"

namespace tsomon::fleet {
namespace {

constexpr int64_t kSchemaVersion = 1;
constexpr const char* kTryElsewhereSeconds = "5 seconds";

constexpr const char* kMakeSchema = R"sql(
DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(7475633);
  CREATE SCHEMA IF NOT EXISTS tsomon;
  CREATE TABLE IF NOT EXISTS tsomon.version (version bigint PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS tsomon.tenant (
    name text PRIMARY KEY,
    served timestamptz NOT NULL DEFAULT '-infinity');
  CREATE TABLE IF NOT EXISTS tsomon.work (
    id text PRIMARY KEY,
    tenant text NOT NULL REFERENCES tsomon.tenant,
    name text NOT NULL,
    message text NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'parked')),
    number bigserial,
    due timestamptz NOT NULL DEFAULT now(),  -- waiting: not before; running: the end of its lease
    worker text NOT NULL DEFAULT '',         -- that has it, or had it last
    tries bigint NOT NULL DEFAULT 0,
    lease bigint NOT NULL DEFAULT 0,
    needs_content boolean NOT NULL DEFAULT false,
    reason text NOT NULL DEFAULT '');
  CREATE INDEX IF NOT EXISTS work_in_turn ON tsomon.work (tenant, number) WHERE state <> 'parked';
  CREATE TABLE IF NOT EXISTS tsomon.verdict (
    id text PRIMARY KEY,
    tenant text NOT NULL,
    message text NOT NULL,
    stored timestamptz NOT NULL DEFAULT now());
  CREATE INDEX IF NOT EXISTS verdict_stored ON tsomon.verdict (stored);
  CREATE TABLE IF NOT EXISTS tsomon.sighting (
    work text NOT NULL REFERENCES tsomon.verdict (id) ON DELETE CASCADE,
    fingerprint text NOT NULL,
    property text NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (work, fingerprint, property));
  CREATE INDEX IF NOT EXISTS sighting_fingerprint ON tsomon.sighting (fingerprint text_pattern_ops);
  CREATE TABLE IF NOT EXISTS tsomon.chunk (
    digest text PRIMARY KEY,
    bytes bytea NOT NULL,
    used timestamptz NOT NULL DEFAULT now());
  CREATE TABLE IF NOT EXISTS tsomon.canary (
    name text PRIMARY KEY,
    message text NOT NULL,
    stored timestamptz NOT NULL DEFAULT now());
  INSERT INTO tsomon.version VALUES (1) ON CONFLICT DO NOTHING;
END $$)sql";

// A text array, as PostgreSQL reads it; the parts have neither quotes nor backslashes.
std::string array_text(const std::vector<std::string>& parts) {
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

std::string interval_text(std::chrono::microseconds time) {
  return fmt::format("{} microseconds", time.count());
}

State state_of(const std::string& name) {
  return name == "done"      ? State::kDone
         : name == "waiting" ? State::kWaiting
         : name == "running" ? State::kRunning
         : name == "parked"  ? State::kParked
                             : State::kUnknown;
}

class PostgresFleet final : public Fleet {
 public:
  explicit PostgresFleet(Postgres server) : server_(std::move(server)) {}

  Result<void> prepare() {
    // The table that came last.
    auto version = server_.run("SELECT to_regclass('tsomon.canary') IS NOT NULL");
    if (!version) {
      return error_of(version);
    }
    if (version->text(0, 0) != "t") {
      if (const auto made = server_.run(kMakeSchema); !made) {
        return error_of(made);
      }
    }
    version = server_.run("SELECT max(version) FROM tsomon.version");
    if (!version) {
      return error_of(version);
    }
    if (version->number(0, 0) != kSchemaVersion) {
      return fail(ErrorKind::kUsage,
                  fmt::format("the schema `tsomon` has version {}, this program knows {}",
                              version->number(0, 0), kSchemaVersion));
    }
    return {};
  }

  Result<State> put(const Work& work, bool again) override {
    const auto message = work_message(work);
    if (!message) {
      return error_of(message);
    }
    const auto before = standing(work.tenant, work.id);
    if (!before) {
      return error_of(before);
    }
    const bool parked = before->state == State::kParked;
    if (before->state == State::kDone || (parked && !again && !before->needs_content) ||
        before->state == State::kWaiting || before->state == State::kRunning) {
      return before->state;
    }
    const auto added = server_.run(
        "WITH t AS (INSERT INTO tsomon.tenant (name) VALUES ($2) ON CONFLICT DO NOTHING)"
        " INSERT INTO tsomon.work (id, tenant, name, message)"
        " SELECT $1, $2, $3, $4 WHERE (SELECT count(*) FROM (SELECT FROM tsomon.work"
        "   WHERE tenant = $2 AND state <> 'parked' LIMIT $5::bigint) AS w) < $5::bigint"
        " ON CONFLICT (id) DO UPDATE SET state = 'waiting', tries = 0, due = now(), worker = '',"
        "   needs_content = false, reason = '', message = excluded.message"
        "   WHERE work.state = 'parked'"
        " RETURNING id",
        {work.id, work.tenant, work.content.name, *message, int64_t{kMostWaiting}});
    if (!added) {
      return error_of(added);
    }
    if (added->size() == 0) {
      // Somebody else was faster, or there is no room.
      const auto now = standing(work.tenant, work.id);
      if (!now) {
        return error_of(now);
      }
      if (now->state == State::kUnknown) {
        return fail(ErrorKind::kEnvironment,
                    fmt::format("{} pieces of work of the tenant {} wait already", kMostWaiting,
                                work.tenant));
      }
      return now->state;
    }
    return before->state;
  }

  Result<std::optional<Taken>> take(const std::string& worker,
                                    std::chrono::milliseconds lease) override {
    for (;;) {
      const auto rows = server_.run(
          "WITH turn AS (SELECT w.id, w.tenant"
          "   FROM (SELECT name FROM tsomon.tenant ORDER BY served) AS t,"
          "   LATERAL (SELECT id, tenant FROM tsomon.work"
          "     WHERE tenant = t.name AND state <> 'parked'"
          "     AND due <= now() - CASE WHEN state = 'waiting' AND worker = $1"
          "       THEN $3::interval ELSE '0' END"
          "     ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED) AS w LIMIT 1),"
          " served AS (UPDATE tsomon.tenant SET served = clock_timestamp() FROM turn"
          "   WHERE name = turn.tenant)"
          " UPDATE tsomon.work SET state = 'running', tries = tries + 1, lease = lease + 1,"
          "   worker = $1, due = now() + $2::interval FROM turn WHERE work.id = turn.id"
          " RETURNING work.id, work.message, work.tries, work.lease",
          {worker, interval_text(lease), kTryElsewhereSeconds});
      if (!rows) {
        return error_of(rows);
      }
      if (rows->size() == 0) {
        return std::nullopt;
      }
      Taken taken;
      taken.tries = static_cast<uint64_t>(rows->number(0, 2));
      taken.lease = rows->text(0, 3);
      const std::string id = rows->text(0, 0);
      auto work = read_work(rows->text(0, 1));
      if (work && work->id == id) {
        taken.work = std::move(*work);
        return taken;
      }
      taken.work.id = id;
      const auto parked = park(taken, worker, Parking::kForGood,
                               work ? "its id is another one" : work.error().message);
      if (!parked) {
        return error_of(parked);
      }
    }
  }

  Result<bool> extend(const Taken& taken, std::chrono::milliseconds lease) override {
    const auto rows = server_.run(
        "UPDATE tsomon.work SET due = now() + $3::interval"
        " WHERE id = $1 AND lease = $2::bigint AND state = 'running'",
        {taken.work.id, taken.lease, interval_text(lease)});
    if (!rows) {
      return error_of(rows);
    }
    return rows->changed() != 0;
  }

  Result<bool> done(const Taken& taken, const Verdict& verdict,
                    const std::vector<Sighting>& sightings) override {
    std::string list = "[";
    for (const Sighting& each : sightings) {
      list += list.size() > 1 ? "," : "";
      list += sighting_text(each);
    }
    list += "]";
    const auto rows = server_.run(
        "WITH gone AS (DELETE FROM tsomon.work WHERE id = $1),"
        " kept AS (INSERT INTO tsomon.verdict (id, tenant, message) VALUES ($1, $2, $3)"
        "   ON CONFLICT DO NOTHING RETURNING id),"
        " seen AS (INSERT INTO tsomon.sighting (work, fingerprint, property, message)"
        "   SELECT kept.id, each ->> 'fingerprint', each ->> 'property', each::text"
        "   FROM kept, json_array_elements($4::json) AS each ON CONFLICT DO NOTHING)"
        " SELECT count(*) FROM kept",
        {taken.work.id, taken.work.tenant, verdict_text(verdict), list});
    if (!rows) {
      return error_of(rows);
    }
    return rows->number(0, 0) != 0;
  }

  Result<void> park(const Taken& taken, const std::string& worker, Parking how,
                    const std::string& reason) override {
    const bool no_try = how == Parking::kBack || how == Parking::kLater;
    const auto rows = server_.run(
        "UPDATE tsomon.work SET state = $3, reason = $4, worker = $5, due = now() + $8::interval,"
        " needs_content = $6::boolean, tries = tries - $7::bigint"
        " WHERE id = $1 AND lease = $2::bigint AND state = 'running'",
        {taken.work.id, taken.lease, how == Parking::kAgain || no_try ? "waiting" : "parked",
         reason, no_try ? std::string_view() : worker,
         how == Parking::kNeedsContent ? "true" : "false", int64_t{no_try},
         interval_text(how == Parking::kLater ? kLaterPause : std::chrono::milliseconds(0))});
    return rows ? Result<void>() : error_of(rows);
  }

  Result<Standing> standing(const std::string& /*tenant*/, const std::string& id) override {
    const auto rows = server_.run(
        "SELECT 'done', '', false FROM tsomon.verdict WHERE id = $1 UNION ALL"
        " SELECT CASE WHEN state = 'running' AND due < now() THEN 'waiting' ELSE state END,"
        "   reason, needs_content FROM tsomon.work WHERE id = $1 LIMIT 1",
        {id});
    if (!rows) {
      return error_of(rows);
    }
    Standing standing;
    if (rows->size() != 0) {
      standing.state = state_of(rows->text(0, 0));
      standing.reason = rows->text(0, 1);
      standing.needs_content = rows->text(0, 2) == "t";
    }
    return standing;
  }

  Result<std::optional<Verdict>> verdict(const std::string& id) override {
    const auto rows = server_.run("SELECT message FROM tsomon.verdict WHERE id = $1", {id});
    if (!rows) {
      return error_of(rows);
    }
    if (rows->size() == 0) {
      return std::nullopt;
    }
    auto verdict = read_verdict(rows->text(0, 0));
    if (!verdict) {
      return error_of(verdict);
    }
    return std::move(*verdict);
  }

  Result<std::vector<std::string>> missing(const std::vector<std::string>& chunks) override {
    const auto rows = server_.run(
        "WITH used AS (UPDATE tsomon.chunk SET used = now()"
        "   WHERE digest = ANY($1::text[]) AND used < now() - interval '1 hour')"
        " SELECT DISTINCT d FROM unnest($1::text[]) AS d"
        " WHERE NOT EXISTS (SELECT FROM tsomon.chunk WHERE digest = d)",
        {array_text(chunks)});
    if (!rows) {
      return error_of(rows);
    }
    std::vector<std::string> missing;
    for (int row = 0; row < rows->size(); ++row) {
      missing.push_back(rows->text(row, 0));
    }
    return missing;
  }

  Result<void> put_chunk(const std::string& digest, std::string_view bytes) override {
    const auto rows = server_.run(
        "INSERT INTO tsomon.chunk (digest, bytes) VALUES ($1, $2)"
        " ON CONFLICT (digest) DO UPDATE SET bytes = excluded.bytes, used = now()",
        {digest, Bytes{bytes}});
    return rows ? Result<void>() : error_of(rows);
  }

  Result<std::optional<std::string>> chunk(const std::string& digest) override {
    const auto rows = server_.run("SELECT bytes FROM tsomon.chunk WHERE digest = $1", {digest},
                                  Postgres::Form::kBinary);
    if (!rows) {
      return error_of(rows);
    }
    if (rows->size() == 0) {
      return std::nullopt;
    }
    return rows->bytes(0, 0);
  }

  Result<void> forget_chunk(const std::string& digest) override {
    const auto rows = server_.run("DELETE FROM tsomon.chunk WHERE digest = $1", {digest});
    return rows ? Result<void>() : error_of(rows);
  }

  Result<void> put_canary(const Canary& canary) override {
    const auto message = canary_message(canary);
    if (!message) {
      return error_of(message);
    }
    const auto rows = server_.run(
        "INSERT INTO tsomon.canary (name, message) VALUES ($1, $2)"
        " ON CONFLICT (name) DO UPDATE SET message = excluded.message, stored = now()",
        {name_of(canary), *message});
    return rows ? Result<void>() : error_of(rows);
  }
  Result<void> canaries(const std::function<void(Canary&&)>& each) override {
    const auto rows = server_.run("SELECT message FROM tsomon.canary");
    if (!rows) {
      return error_of(rows);
    }
    for (int row = 0; row < rows->size(); ++row) {
      auto canary = read_canary(rows->text(row, 0));
      if (!canary) {
        return error_of(canary);
      }
      each(std::move(*canary));
    }
    return {};
  }

  Result<FleetStatus> status() override {
    FleetStatus status;
    status.server = server_.server();
    auto rows = server_.run(
        "SELECT count(*) FILTER (WHERE state = 'waiting' OR state = 'running' AND due < now()),"
        "  count(*) FILTER (WHERE state = 'running' AND due >= now()),"
        "  count(*) FILTER (WHERE state = 'parked'),"
        "  (SELECT count(*) FROM tsomon.verdict),"
        "  (SELECT count(*) FROM tsomon.verdict WHERE stored > now() - interval '1 minute')"
        " FROM tsomon.work");
    if (!rows) {
      return error_of(rows);
    }
    const auto number = [&](int column) { return static_cast<uint64_t>(rows->number(0, column)); };
    status.waiting = number(0);
    status.running = number(1);
    status.parked = number(2);
    status.done = number(3);
    status.done_lately = number(4);
    rows = server_.run(
        "SELECT tenant, count(*) FROM tsomon.work WHERE state = 'waiting' GROUP BY tenant");
    for (int row = 0; rows && row < rows->size(); ++row) {
      status.tenants[rows->text(row, 0)] = static_cast<uint64_t>(rows->number(row, 1));
    }
    if (rows) {
      rows = server_.run(
          "SELECT id, tenant, name, reason FROM tsomon.work WHERE state = 'parked'"
          " ORDER BY due DESC LIMIT $1::bigint",
          {int64_t{kMostListed}});
    }
    if (!rows) {
      return error_of(rows);
    }
    for (int row = 0; row < rows->size(); ++row) {
      status.parked_work.push_back(
          {rows->text(row, 0), rows->text(row, 1), rows->text(row, 2), rows->text(row, 3)});
    }
    return status;
  }

  Result<void> sightings(const std::string& fingerprint,
                         const std::function<void(Sighting&&)>& each) override {
    // By key, a portion at a time: there may be millions.
    std::string work;
    std::string last;
    std::string property;
    for (;;) {
      const auto rows = server_.run(
          "SELECT work, fingerprint, property, message FROM tsomon.sighting"
          " WHERE starts_with(fingerprint, $1) AND (work, fingerprint, property) > ($2, $3, $4)"
          " ORDER BY work, fingerprint, property LIMIT 1000",
          {fingerprint, work, last, property});
      if (!rows) {
        return error_of(rows);
      }
      for (int row = 0; row < rows->size(); ++row) {
        auto sighting = read_sighting(rows->text(row, 3));
        if (!sighting) {
          return error_of(sighting);
        }
        each(std::move(*sighting));
      }
      if (rows->size() == 0) {
        return {};
      }
      work = rows->text(rows->size() - 1, 0);
      last = rows->text(rows->size() - 1, 1);
      property = rows->text(rows->size() - 1, 2);
    }
  }

  Result<Pruned> prune(std::chrono::microseconds chunks,
                       std::chrono::microseconds results) override {
    Pruned pruned;
    const auto remove = [&](const char* sql, std::chrono::microseconds age,
                            std::initializer_list<uint64_t*> counts) {
      const auto rows = server_.run(sql, {interval_text(age)});
      int column = 0;
      for (uint64_t* const count : counts) {
        *count = rows ? static_cast<uint64_t>(rows->number(0, column++)) : 0;
      }
      return rows ? Result<void>() : error_of(rows);
    };
    auto done = remove(
        "WITH old AS (SELECT id FROM tsomon.verdict WHERE stored < now() - $1::interval),"
        " s AS (DELETE FROM tsomon.sighting USING old WHERE work = old.id RETURNING 1),"
        " v AS (DELETE FROM tsomon.verdict USING old WHERE verdict.id = old.id RETURNING 1)"
        " SELECT (SELECT count(*) FROM v), (SELECT count(*) FROM s)",
        results, {&pruned.verdicts, &pruned.sightings});
    if (done) {
      done = remove(
          "WITH gone AS (DELETE FROM tsomon.work WHERE state = 'parked'"
          "   AND due < now() - $1::interval RETURNING 1) SELECT count(*) FROM gone",
          results, {&pruned.parked});
    }
    if (done) {
      done = remove(
          "WITH gone AS (DELETE FROM tsomon.canary WHERE stored < now() - $1::interval"
          "   RETURNING 1) SELECT count(*) FROM gone",
          results, {&pruned.canaries});
    }
    // Portions: what takes longer than the patience for one answer would be begun again each time.
    for (uint64_t portion = 1; done && portion != 0; pruned.chunks += portion) {
      done = remove(
          "WITH gone AS (DELETE FROM tsomon.chunk WHERE digest IN (SELECT digest FROM tsomon.chunk"
          "   WHERE used < now() - $1::interval LIMIT 10000) RETURNING 1)"
          " SELECT count(*) FROM gone",
          chunks, {&portion});
    }
    return done ? Result<Pruned>(pruned) : error_of(done);
  }

 private:
  Postgres server_;
};

}  // namespace

Result<std::unique_ptr<Fleet>> open_postgres_fleet(const std::string& url,
                                                   const Credentials& credentials) {
  auto server = Postgres::connect(url, credentials);
  if (!server) {
    return error_of(server);
  }
  auto fleet = std::make_unique<PostgresFleet>(std::move(*server));
  if (const auto ready = fleet->prepare(); !ready) {
    return error_of(ready);
  }
  return fleet;
}

}  // namespace tsomon::fleet
