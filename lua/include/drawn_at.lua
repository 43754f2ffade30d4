-- Returns the time, in ms since 1970 by the instance's clock, at which an id was drawn; its bytes begin at first.
local function drawn_at(text, first)
  local a, b, c, d, e, f = string.byte(text, first, first + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end
