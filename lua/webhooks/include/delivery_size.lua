-- Returns the bytes that a delivery takes, from its record, nil for none: with its entries in two indexes.
local function delivery_size(record)
  return record and 235 + #record or 0
end
