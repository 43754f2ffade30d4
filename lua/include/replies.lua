-- Writes strings, false and arrays of these as one string; read takes them from it.
local function write(value)
  if not value then
    return '-'
  elseif type(value) == 'string' then
    return '$' .. #value .. ':' .. value
  end
  local parts = {}
  for i = 1, #value do
    parts[i] = write(value[i])
  end
  return '*' .. #value .. ':' .. table.concat(parts)
end

local function read(text, at)
  local kind = string.sub(text, at, at)
  if kind == '-' then
    return false, at + 1
  end
  local colon = string.find(text, ':', at, true)
  local size = tonumber(string.sub(text, at + 1, colon - 1))
  at = colon + 1
  if kind == '$' then
    return string.sub(text, at, at + size - 1), at + size
  end
  local list = {}
  for i = 1, size do
    list[i], at = read(text, at)
  end
  return list, at
end
