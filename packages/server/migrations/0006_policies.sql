CREATE TABLE "wovyr"."admissions" (
	"position" bigserial NOT NULL,
	"shard" integer NOT NULL,
	"admitted" boolean NOT NULL,
	"superseded" boolean NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	CONSTRAINT "admissions_pk" PRIMARY KEY("tenant","name","run")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."permits" (
	"held" integer NOT NULL,
	"in_use" integer NOT NULL,
	"wanted" integer NOT NULL,
	"evict" integer NOT NULL,
	"told" integer NOT NULL,
	"oldest" bigint NOT NULL,
	"since" timestamp with time zone,
	"lease_until" timestamp with time zone NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"owner" text collate "C" NOT NULL,
	CONSTRAINT "permits_pk" PRIMARY KEY("tenant","name","owner")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."tokens" (
	"part" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"count" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	CONSTRAINT "tokens_pk" PRIMARY KEY("tenant","name","part")
);
--> statement-breakpoint
CREATE INDEX "admissions_order" ON "wovyr"."admissions" USING btree ("tenant","name","admitted","position");--> statement-breakpoint
CREATE INDEX "permits_owner" ON "wovyr"."permits" USING btree ("owner");
--> statement-breakpoint
ALTER TABLE "wovyr"."permits" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE "wovyr"."tokens" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
-- Limits that all nodes share. Whoever asks holds the names of its limits until its transaction ends, in one order, so that nobody waits in a circle.
CREATE FUNCTION "wovyr"."lock_limits_1"(a_tenants text[], a_names text[]) RETURNS void LANGUAGE plpgsql AS $$
begin
  perform pg_advisory_xact_lock(l.key) from (
    select distinct hashtextextended(a.tenant || ' ' || a.name, 8247105) as key from unnest(a_tenants, a_names) a(tenant, name)
    where a.name is not null and a.name <> '' order by 1
  ) l;
end
$$;
--> statement-breakpoint
-- What a node uses and wants of limits; answers what it may use, what it is to end, and whether others are there. `sharesOf` in limits.ts says the same.
CREATE FUNCTION "wovyr"."permits_1"(
  asked_owner text, lease double precision, asks integer, tenants text, names text, capacities integer[], uses integer[], wants integer[],
  oldests bigint[], evicting boolean[]
) RETURNS TABLE(permits integer, evict integer, shared boolean) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  sep constant text := E'\x1f';
  a_tenants text[] := string_to_array(tenants, sep);
  a_names text[] := string_to_array(names, sep);
  now_ timestamptz;
  mine record;
  victim record;
  my_since timestamptz;
  turn timestamptz;
  my_evict integer;
  held_by_others integer;
  demand_of_others integer;
  others integer;
  contenders integer;
  ahead integer;
  even integer;
  allowed integer;
  more integer;
  left_over integer;
  marked integer;
begin
  if cardinality(a_tenants) <> asks + 1 or cardinality(a_names) <> asks + 1 then
    raise exception 'a text of a limit holds U+001F' using errcode = '22021';
  end if;
  perform wovyr.lock_limits_1(a_tenants, a_names);
  now_ := clock_timestamp();
  for i in 1..asks loop
    delete from wovyr.permits p where p.tenant = a_tenants[i] and p.name = a_names[i] and p.lease_until <= now_;
    select p.since, p.evict into mine from wovyr.permits p where p.tenant = a_tenants[i] and p.name = a_names[i] and p.owner = asked_owner;
    -- After all that came before, also where the clock has not gone on since.
    select greatest(now_, max(p.since) + interval '1 microsecond') into turn from wovyr.permits p where p.tenant = a_tenants[i] and p.name = a_names[i];
    my_since := case when wants[i] = 0 then null else coalesce(mine.since, turn) end;
    my_evict := least(coalesce(mine.evict, 0), uses[i]);
    select coalesce(sum(p.held), 0), coalesce(sum(p.in_use + p.wanted), 0), count(*),
      count(*) filter (where p.in_use + p.wanted > 0),
      count(*) filter (where p.in_use + p.wanted > 0 and
        row(p.in_use, coalesce(p.since, 'infinity'::timestamptz), p.owner) < row(uses[i], coalesce(my_since, 'infinity'::timestamptz), asked_owner))
    into held_by_others, demand_of_others, others, contenders, ahead
    from wovyr.permits p where p.tenant = a_tenants[i] and p.name = a_names[i] and p.owner <> asked_owner;
    if uses[i] + wants[i] = 0 then
      delete from wovyr.permits p where p.tenant = a_tenants[i] and p.name = a_names[i] and p.owner = asked_owner;
      permits := 0;
      evict := 0;
      shared := others > 0;
      return next;
      continue;
    end if;
    contenders := contenders + 1;
    even := capacities[i] / contenders + (case when ahead < capacities[i] % contenders then 1 else 0 end);
    allowed := greatest(even, capacities[i] - demand_of_others);
    more := greatest(0, least(wants[i], allowed - uses[i], capacities[i] - held_by_others - uses[i]));
    if uses[i] + more > 0 and my_since is not null then
      my_since := turn;
    end if;
    insert into wovyr.permits as p (held, in_use, wanted, evict, told, oldest, since, lease_until, tenant, name, owner)
    values (uses[i] + more, uses[i], wants[i], my_evict, 0, oldests[i], my_since, now_ + lease * interval '1 millisecond',
      a_tenants[i], a_names[i], asked_owner)
    on conflict (tenant, name, owner) do update set held = excluded.held, in_use = excluded.in_use, wanted = excluded.wanted,
      evict = excluded.evict, told = 0, oldest = excluded.oldest, since = excluded.since, lease_until = excluded.lease_until;
    if evicting[i] then
      select wants[i] - more - coalesce(sum(p.evict + p.told), 0) into left_over
      from wovyr.permits p where p.tenant = a_tenants[i] and p.name = a_names[i];
      for victim in
        select p.owner, p.in_use - p.evict - p.told as free from wovyr.permits p
        where p.tenant = a_tenants[i] and p.name = a_names[i] and p.in_use > p.evict + p.told order by p.oldest, p.owner
      loop
        exit when left_over <= 0;
        marked := least(left_over, victim.free);
        update wovyr.permits p set evict = p.evict + marked
        where p.tenant = a_tenants[i] and p.name = a_names[i] and p.owner = victim.owner;
        left_over := left_over - marked;
      end loop;
    end if;
    update wovyr.permits p set told = p.evict, evict = 0
    where p.tenant = a_tenants[i] and p.name = a_names[i] and p.owner = asked_owner returning p.told into my_evict;
    permits := least(uses[i] + more, allowed);
    evict := my_evict;
    shared := others > 0;
    return next;
  end loop;
end
$$;
--> statement-breakpoint
-- Takes tokens of rate limits; answers how many, and how long until there may be more.
CREATE FUNCTION "wovyr"."take_tokens_1"(
  asks integer, tenants text, names text, limits integer[], periods bigint[], parts bigint[], wants integer[]
) RETURNS TABLE(granted integer, wait bigint) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  sep constant text := E'\x1f';
  a_tenants text[] := string_to_array(tenants, sep);
  a_names text[] := string_to_array(names, sep);
  now_ bigint;
  first_part bigint;
  oldest_part bigint;
  taken bigint;
begin
  if cardinality(a_tenants) <> asks + 1 or cardinality(a_names) <> asks + 1 then
    raise exception 'a text of a limit holds U+001F' using errcode = '22021';
  end if;
  perform wovyr.lock_limits_1(a_tenants, a_names);
  now_ := floor(extract(epoch from clock_timestamp()) * 1000);
  for i in 1..asks loop
    first_part := floor((now_ - periods[i])::numeric / parts[i]);
    delete from wovyr.tokens t where t.tenant = a_tenants[i] and t.name = a_names[i] and t.part < first_part;
    select coalesce(sum(t.count), 0), min(t.part) into taken, oldest_part
    from wovyr.tokens t where t.tenant = a_tenants[i] and t.name = a_names[i];
    granted := greatest(0, least(wants[i], limits[i] - taken));
    if granted > 0 then
      insert into wovyr.tokens as t (part, expires_at, count, tenant, name)
      values (now_ / parts[i], now_ + periods[i] + 2 * parts[i], granted, a_tenants[i], a_names[i])
      on conflict (tenant, name, part) do update set count = t.count + excluded.count, expires_at = excluded.expires_at;
    end if;
    wait := case when granted = wants[i] then 0 else (coalesce(oldest_part, now_ / parts[i]) + 1) * parts[i] + periods[i] - now_ end;
    return next;
  end loop;
end
$$;
--> statement-breakpoint
-- The statuses of runs that may still take turns; `openStatuses` in the port.
CREATE OR REPLACE FUNCTION "wovyr"."is_open_1"(status text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  select status in ('open', 'queued', 'parked', 'paused', 'compensating')
$$;
--> statement-breakpoint
-- Keeps runs that wait for their turn, and admits those whose turn has come; answers which were told something. What is admitted is counted by the runs
-- themselves: one that has closed or is gone is none.
CREATE FUNCTION "wovyr"."admit_1"(
  asks integer, tenants text, names text, capacities integer[], modes text, runs text, shards integer[],
  admission_message text, admitted_fact text, refused_fact text, superseded_message text, superseded_fact text
) RETURNS TABLE(tenant text, run text, shard integer) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  sep constant text := E'\x1f';
  a_tenants text[] := string_to_array(tenants, sep);
  a_names text[] := string_to_array(names, sep);
  a_modes text[] := string_to_array(modes, sep);
  a_runs text[] := string_to_array(runs, sep);
  asked record;
  entry record;
  room integer;
  waiting integer;
begin
  if cardinality(a_tenants) <> asks + 1 or cardinality(a_names) <> asks + 1 or cardinality(a_runs) <> asks + 1 then
    raise exception 'a text of an admission holds U+001F' using errcode = '22021';
  end if;
  perform wovyr.lock_limits_1(a_tenants, a_names);
  insert into wovyr.admissions (shard, admitted, superseded, tenant, name, run)
  select a.shard, false, false, a.tenant, a.name, a.run
  from unnest(a_tenants, a_names, a_runs, shards) with ordinality a(tenant, name, run, shard, place)
  where a.place <= asks and a.run <> '' order by a.place
  on conflict do nothing;
  -- Those that were admitted when others were asked for: whoever asks for them may not have heard.
  return query select m.tenant, m.run, m.shard from unnest(a_tenants, a_names, a_runs) a(tenant, name, run)
    join wovyr.admissions m on m.tenant = a.tenant and m.name = a.name and m.run = a.run where m.admitted;
  for asked in
    select distinct on (a.tenant, a.name) a.tenant, a.name, a.capacity, a.mode
    from unnest(a_tenants, a_names, capacities, a_modes) with ordinality a(tenant, name, capacity, mode, place)
    where a.place <= asks order by a.tenant, a.name, a.place
  loop
    delete from wovyr.admissions m where m.tenant = asked.tenant and m.name = asked.name
    and not exists (select from wovyr.instances i where i.tenant = m.tenant and i.run = m.run and i.closed_at is null);
    select asked.capacity - count(*) filter (where m.admitted), count(*) filter (where not m.admitted) into room, waiting
    from wovyr.admissions m where m.tenant = asked.tenant and m.name = asked.name;
    for entry in
      select m.run, m.shard, m.position from wovyr.admissions m
      where m.tenant = asked.tenant and m.name = asked.name and not m.admitted
      order by m.position limit case when asked.mode = 'cancelNewest' then null else greatest(room, 0) end
    loop
      waiting := waiting - 1;
      if room > 0 then
        update wovyr.admissions m set admitted = true where m.tenant = asked.tenant and m.name = asked.name and m.run = entry.run;
      else
        delete from wovyr.admissions m where m.tenant = asked.tenant and m.name = asked.name and m.run = entry.run;
      end if;
      insert into wovyr.inbox (shard, tenant, run, message, fact)
      values (entry.shard, asked.tenant, entry.run, admission_message, case when room > 0 then admitted_fact else refused_fact end)
      on conflict do nothing;
      room := room - 1;
      tenant := asked.tenant;
      run := entry.run;
      shard := entry.shard;
      return next;
    end loop;
    if asked.mode = 'cancelInProgress' and waiting > 0 then
      select waiting - count(*) into waiting from wovyr.admissions m
      where m.tenant = asked.tenant and m.name = asked.name and m.admitted and m.superseded;
      for entry in
        select m.run, m.shard from wovyr.admissions m
        where m.tenant = asked.tenant and m.name = asked.name and m.admitted and not m.superseded order by m.position limit greatest(waiting, 0)
      loop
        update wovyr.admissions m set superseded = true where m.tenant = asked.tenant and m.name = asked.name and m.run = entry.run;
        insert into wovyr.inbox (shard, tenant, run, message, fact)
        values (entry.shard, asked.tenant, entry.run, superseded_message, superseded_fact) on conflict do nothing;
        tenant := asked.tenant;
        run := entry.run;
        shard := entry.shard;
        return next;
      end loop;
    end if;
  end loop;
end
$$;
