-- Returns what a session itself has used: actions and micro-USD without what is delegated to its children or was used by them,
-- and without value of open leases, which is held. fields are n, v, leased_value, delegated_actions, delegated_value,
-- children_actions and children_value.
local function own_usage(fields)
  local n, v, leased_value, delegated_actions, delegated_value, children_actions, children_value = unpack(fields, 1, 7)
  return n - (delegated_actions or 0) - (children_actions or 0), v - (leased_value or 0) - (delegated_value or 0) - (children_value
    or 0)
end

-- Returns what a session has used of each action type, of all its fields: name, index, n and v (budgets/include/action_types.lua).
local function used_by_type(fields)
  local types = {}
  local function add(name, index, n, v)
    local typed = types[name] or {name = name, n = 0, v = 0}
    types[name] = {name = name, index = index or typed.index, n = typed.n + n, v = typed.v + v}
  end
  for i = 1, #fields, 2 do
    local kind, name = string.match(fields[i], '^([tp]):(.*)$')
    if kind == 't' then
      add(name, string.match(fields[i + 1], '^(%d+) (%-?%d+) (%-?%d+)$'))
    elseif kind then
      local n = fields[i + 1] % 1000000
      add(name, nil, n, (fields[i + 1] - n) / 1000000)
    end
  end
  return types
end
