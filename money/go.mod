module remit/money

go 1.26
