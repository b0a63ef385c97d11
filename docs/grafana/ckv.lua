-- INFO ckv as names and numbers, for redis_exporter's --script: it makes of each pair
-- redis_script_values{key="ckv_records"} and so on. (Its --include-modules-metrics drops fields that it does
-- not know, a module's among them.)
local found = {}
for name, value in string.gmatch(redis.call('INFO', 'ckv'), '(ckv_[%w_]+):([^\r\n]+)') do
    if tonumber(value) then
        found[#found + 1] = name
        found[#found + 1] = value
    end
end
return found
