// SPDX-License-Identifier: Apache-2.0
#include "store/database.h"

#include <nlohmann/json.hpp>
#include <sqlite3.h>

namespace joulemark::store {
namespace {

constexpr int lock_wait_ms = 30'000;

std::string path_of(sqlite3* handle) {
    const char* path = handle != nullptr ? sqlite3_db_filename(handle, "main") : nullptr;
    return path != nullptr ? path : "";
}

[[noreturn]] void fail(sqlite3* handle, int code) {
    throw DatabaseError(code, path_of(handle),
                        handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
}

}  // namespace

DatabaseError::DatabaseError(int sqlite_code, const std::string& path, const std::string& message)
    : Error(ExitCode::environment,
            fmt::format("the database {} cannot be used ({}): delete it, it is made again from the run files",
                        path, message)),
      sqlite_code_(sqlite_code & 0xFF) {}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Statement::Statement(sqlite3* database, std::string_view sql) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
    statement_.reset(raw);
    if (code != SQLITE_OK) {
        fail(database, code);
    }
}

void Statement::check(int code) const {
    if (code != SQLITE_OK) {
        fail(sqlite3_db_handle(statement_.get()), code);
    }
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        fail(sqlite3_db_handle(statement_.get()), code);
    }
    return code == SQLITE_ROW;
}

void Statement::reset() {
    sqlite3_reset(statement_.get());
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
    return is_null(column) ? std::numeric_limits<double>::quiet_NaN()
                           : sqlite3_column_double(statement_.get(), column);
}

std::optional<double> Statement::optional_real(int column) const {
    return is_null(column) ? std::nullopt : std::optional(sqlite3_column_double(statement_.get(), column));
}

std::string_view Statement::text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    return bytes == nullptr
               ? std::string_view()
               : std::string_view(bytes,
                                  static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

nlohmann::json Statement::json(int column) const {
    auto parsed = nlohmann::json::parse(text(column), nullptr, false);
    if (parsed.is_discarded()) {
        throw DatabaseError(SQLITE_CORRUPT, path_of(sqlite3_db_handle(statement_.get())),
                            "it holds broken JSON");
    }
    return parsed;
}

void Statement::bind_real(int parameter, double value) {
    check(sqlite3_bind_double(statement_.get(), parameter, value));  // NaN becomes NULL
}

void Statement::bind_integer(int parameter, std::int64_t value) {
    check(sqlite3_bind_int64(statement_.get(), parameter, value));
}

void Statement::bind_text(int parameter, std::string_view value) {
    const char* bytes = value.data() == nullptr ? "" : value.data();  // a null pointer would bind NULL
    check(
        sqlite3_bind_text64(statement_.get(), parameter, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Database::Close::operator()(sqlite3* handle) const {
    sqlite3_close_v2(handle);
}

Database::Database(const std::filesystem::path& path) {
    // A connection belongs to one thread: its own lock would only cost time on every column read.
    constexpr int open_flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw, open_flags, nullptr);
    handle_.reset(raw);
    if (code != SQLITE_OK) {
        throw DatabaseError(code, path.string(), raw != nullptr ? sqlite3_errmsg(raw) : sqlite3_errstr(code));
    }
    sqlite3_busy_timeout(raw, lock_wait_ms);
    execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -32000;");
}

void Database::execute(const std::string& sql) {
    const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
        fail(handle_.get(), code);
    }
}

std::string Database::path() const {
    return path_of(handle_.get());
}

std::int64_t Database::last_row() const {
    return sqlite3_last_insert_rowid(handle_.get());
}

std::int64_t Database::query_integer(std::string_view sql) const {
    Statement statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

Transaction::Transaction(Database& database) : database_(database) {
    database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (open_) {
        try {
            database_.execute("ROLLBACK");
        } catch (const DatabaseError&) {  // SQLite has already rolled back, and said why
        }
    }
}

void Transaction::commit() {
    database_.execute("COMMIT");
    open_ = false;
}

}  // namespace joulemark::store
