// The tables of a store, in each version that there was.
//
// Versions    PRAGMA user_version. Each adds tables to the one before, and changes none that is there: so a store is taken
//             forward in one transaction, and is of one version or the next whatever ends that.
//             1: findings, where they were seen, slices, and which shows which.
//             2: what became of analysing slices, explanations, which findings are predictions; incidents.
// Errors      As Database.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <filesystem>

#include "monitor/service/database.h"
#include "tso/support/result.h"

namespace tsomon::service {

inline constexpr int64_t kStoreVersion = 2;

// What a new connection needs.
Result<void> set_up_connection(Database* database);

// The version of a store that is whole. kDamaged: it is not. kUsage: of a later version. `writable`: the file is.
Result<int64_t> examine_store(Database* database, const std::filesystem::path& file, bool writable);

// Of an empty file.
Result<void> make_store_tables(Database* database);
// From `version` to the present one, all or nothing.
Result<void> migrate_store(Database* database, int64_t version);

}  // namespace tsomon::service
