-- Returns the state of a transaction: the one list of these fields in Lua. Go reads them by the same names, in
-- transactionstate.go.
-- Sets state.
local state = {$status, $charged, $overage, $committed, $rolled, $reason, $post, $held}
