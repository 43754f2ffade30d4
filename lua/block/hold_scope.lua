-- Refuses a scope that is not among those held, which are separated by single spaces.
-- Takes scope.
if not string.find(' ' .. $held .. ' ', ' ' .. scope .. ' ', 1, true) then
  return {'scope_not_held', scope}
end
