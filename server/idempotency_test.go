package server_test

func keyed(key string) option { return header("Idempotency-Key", key) }
