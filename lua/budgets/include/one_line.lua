-- Returns a text without line breaks, as replies that are joined carry it: a line break becomes \n, and \ becomes \\.
local function one_line(text)
  return (string.gsub(string.gsub(text, '\\', '\\\\'), '\n', '\\n'))
end
