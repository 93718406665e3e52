// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace joulemark::store {

/// Any complaint of SQLite. Ends a command unless somebody knows a way round it.
class DatabaseError : public Error {
  public:
    DatabaseError(int sqlite_code, const std::string& path, const std::string& message);
    /// The primary result code: SQLITE_BUSY, SQLITE_CORRUPT ...
    int sqlite_code() const { return sqlite_code_; }

  private:
    int sqlite_code_;
};

/// A prepared statement: bind, step, read columns (from 0), reset, again.
class Statement {
  public:
    Statement(sqlite3* database, std::string_view sql);

    /// Binds all parameters in order; an absent optional, and NaN, is NULL.
    template <typename... Values>
    Statement& bind(const Values&... values) {
        reset();
        int parameter = 0;
        (bind_one(++parameter, values), ...);
        return *this;
    }
    /// True when there is a row.
    bool step();
    /// For statements without rows: runs it once with these parameters.
    template <typename... Values>
    void run(const Values&... values) {
        bind(values...);
        step();
        reset();
    }
    void reset();

    bool is_null(int column) const;
    std::int64_t integer(int column) const;
    double real(int column) const;  ///< NaN for NULL
    std::optional<double> optional_real(int column) const;
    /// Valid until the next step or reset.
    std::string_view text(int column) const;
    /// Throws DatabaseError (SQLITE_CORRUPT) for text that is no JSON.
    nlohmann::json json(int column) const;

  private:
    template <typename Value>
    void bind_one(int parameter, const Value& value) {
        if constexpr (std::is_floating_point_v<Value>) {
            bind_real(parameter, value);
        } else if constexpr (std::is_integral_v<Value>) {
            bind_integer(parameter, static_cast<std::int64_t>(value));
        } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
            bind_text(parameter, value);
        } else if (value) {
            bind_one(parameter, *value);
        } else {
            bind_real(parameter, std::numeric_limits<double>::quiet_NaN());
        }
    }
    void bind_real(int parameter, double value);
    void bind_integer(int parameter, std::int64_t value);
    void bind_text(int parameter, std::string_view value);
    void check(int code) const;

    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// One connection. Foreign keys are on; a lock held by another process is waited for, half a minute at most.
class Database {
  public:
    /// Creates the file where there is none. Throws DatabaseError.
    explicit Database(const std::filesystem::path& path);

    void execute(const std::string& sql);
    Statement prepare(std::string_view sql) const { return Statement(handle_.get(), sql); }
    std::int64_t last_row() const;
    std::string path() const;
    /// The first column of the first row.
    std::int64_t query_integer(std::string_view sql) const;

  private:
    struct Close {
        void operator()(sqlite3* handle) const;
    };
    std::unique_ptr<sqlite3, Close> handle_;
};

/// Takes the write lock at once, so that what is read inside cannot change before it is written. Rolls back
/// unless committed.
class Transaction {
  public:
    explicit Transaction(Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

  private:
    Database& database_;
    bool open_ = true;
};

}  // namespace joulemark::store
