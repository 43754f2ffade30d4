-- Takes where a page starts, '' for the newest member, as ZREVRANGEBYLEX takes it.
local newest = '+'
if before ~= '' then
  newest = '(' .. before
end
