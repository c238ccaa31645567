CREATE SCHEMA IF NOT EXISTS "wovyr";
--> statement-breakpoint
CREATE TABLE "wovyr"."dead_letters" (
	"at" bigint NOT NULL,
	"attempts" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"effect" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"workflow" text collate "C" NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"failure" text collate "C" NOT NULL,
	CONSTRAINT "dead_letters_pk" PRIMARY KEY("tenant","run","effect")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."groups" (
	"name" text collate "C" PRIMARY KEY NOT NULL,
	"first" integer NOT NULL,
	"shards" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "wovyr"."heartbeats" (
	"at" bigint NOT NULL,
	"attempt" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"effect" text collate "C" NOT NULL,
	"details" text collate "C" NOT NULL,
	CONSTRAINT "heartbeats_pk" PRIMARY KEY("tenant","run","effect")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."history" (
	"at" bigint NOT NULL,
	"seq" integer NOT NULL,
	"count" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"node" text collate "C" NOT NULL,
	"events" text collate "C" NOT NULL,
	CONSTRAINT "history_pk" PRIMARY KEY("tenant","run","seq")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."inbox" (
	"position" bigserial NOT NULL,
	"shard" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"message" text collate "C" NOT NULL,
	"fact" text collate "C" NOT NULL,
	CONSTRAINT "inbox_pk" PRIMARY KEY("tenant","run","message")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."instance_attributes" (
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"attributes" jsonb NOT NULL,
	CONSTRAINT "instance_attributes_pk" PRIMARY KEY("tenant","run")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."instances" (
	"created_at" bigint NOT NULL,
	"closed_at" bigint,
	"shard" integer NOT NULL,
	"tail" integer NOT NULL,
	"busy" boolean NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"id" text collate "C" NOT NULL,
	"workflow" text collate "C" NOT NULL,
	"version" text collate "C" NOT NULL,
	"status" text collate "C" NOT NULL,
	"nonce" text collate "C" NOT NULL,
	"parent" text collate "C",
	"correlation_id" text collate "C",
	"origin" text collate "C",
	CONSTRAINT "instances_pk" PRIMARY KEY("tenant","run")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."publications" (
	"position" bigserial NOT NULL,
	"at" bigint NOT NULL,
	"reached" integer DEFAULT 0 NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"key" text collate "C",
	"topic" text collate "C" NOT NULL,
	"digest" text collate "C" NOT NULL,
	"fact" text collate "C" NOT NULL,
	CONSTRAINT "publications_pk" PRIMARY KEY("tenant","id")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."shards" (
	"id" integer PRIMARY KEY NOT NULL,
	"group" text collate "C" NOT NULL,
	"epoch" bigint NOT NULL,
	"owner" text collate "C"
);
--> statement-breakpoint
CREATE TABLE "wovyr"."start_keys" (
	"at" bigint NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"slot" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"digest" text collate "C" NOT NULL,
	CONSTRAINT "start_keys_pk" PRIMARY KEY("tenant","slot")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."step_outcomes" (
	"at" bigint NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"effect" text collate "C" NOT NULL,
	"outcome" text collate "C",
	CONSTRAINT "step_outcomes_pk" PRIMARY KEY("tenant","run","effect")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."strikes" (
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"tail" integer NOT NULL,
	"workflow" text collate "C" NOT NULL,
	"count" integer NOT NULL,
	CONSTRAINT "strikes_pk" PRIMARY KEY("tenant","run","tail")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."timers" (
	"due" bigint NOT NULL,
	"shard" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"effect" text collate "C" NOT NULL,
	CONSTRAINT "timers_pk" PRIMARY KEY("tenant","run","effect")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."waits" (
	"shard" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"effect" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"key" text collate "C",
	"topic" text collate "C" NOT NULL,
	CONSTRAINT "waits_pk" PRIMARY KEY("tenant","run","effect")
);
--> statement-breakpoint
CREATE INDEX "dead_letters_at" ON "wovyr"."dead_letters" USING btree ("tenant","at","run","effect");--> statement-breakpoint
CREATE INDEX "inbox_posted" ON "wovyr"."inbox" USING btree ("shard","position");--> statement-breakpoint
CREATE INDEX "instance_attributes_search" ON "wovyr"."instance_attributes" USING gin ("attributes" jsonb_path_ops);--> statement-breakpoint
CREATE UNIQUE INDEX "instances_open" ON "wovyr"."instances" USING btree ("tenant","id") WHERE "wovyr"."instances"."closed_at" is null;--> statement-breakpoint
CREATE INDEX "instances_closed" ON "wovyr"."instances" USING btree ("tenant","id","run") WHERE "wovyr"."instances"."closed_at" is not null;--> statement-breakpoint
CREATE INDEX "instances_busy" ON "wovyr"."instances" USING btree ("shard","run","tenant") WHERE "wovyr"."instances"."busy";--> statement-breakpoint
CREATE INDEX "instances_parked" ON "wovyr"."instances" USING btree ("shard","run","tenant") WHERE "wovyr"."instances"."status" = 'parked';--> statement-breakpoint
CREATE INDEX "publications_topic" ON "wovyr"."publications" USING btree ("tenant","topic","position");--> statement-breakpoint
CREATE INDEX "publications_at" ON "wovyr"."publications" USING btree ("at");--> statement-breakpoint
CREATE INDEX "start_keys_at" ON "wovyr"."start_keys" USING btree ("at");--> statement-breakpoint
CREATE INDEX "step_outcomes_at" ON "wovyr"."step_outcomes" USING btree ("at");--> statement-breakpoint
CREATE INDEX "timers_due" ON "wovyr"."timers" USING btree ("shard","due");--> statement-breakpoint
CREATE INDEX "waits_topic" ON "wovyr"."waits" USING btree ("tenant","topic","run");