-- comment
i /* block */ + 1