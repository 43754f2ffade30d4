-- Returns the state of a transaction: the one list of these fields in Lua. Go reads them by the same names, in
-- transactionstate.go.
local state = {$st, $v, $ov, $cm, $rb, $re, $po, $hv}
