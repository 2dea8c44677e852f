;; What the core module imports: each function passes the question on to the
;; driver, through a table that the driver fills. The detour is needed since the
;; driver uses the core's memory, and so can only be made after it.
(module
  (table $driver (export "driver") 8 funcref)
  (type $of_id (func (param i32 i32 i32)))
  (type $of_two (func (param i32 i32 i32 i32 i32)))

  (func (export "seen") (param i32 i32 i32)
    (call_indirect $driver (type $of_id)
      (local.get 0) (local.get 1) (local.get 2) (i32.const 0)))
  (func (export "remember") (param i32 i32 i32)
    (call_indirect $driver (type $of_id)
      (local.get 0) (local.get 1) (local.get 2) (i32.const 1)))
  (func (export "forget") (param i32 i32 i32)
    (call_indirect $driver (type $of_id)
      (local.get 0) (local.get 1) (local.get 2) (i32.const 2)))
  (func (export "claim") (param i32 i32 i32)
    (call_indirect $driver (type $of_id)
      (local.get 0) (local.get 1) (local.get 2) (i32.const 3)))
  (func (export "renew") (param i32 i32 i32 i32 i32)
    (call_indirect $driver (type $of_two)
      (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (i32.const 4)))
  (func (export "complete") (param i32 i32 i32 i32 i32)
    (call_indirect $driver (type $of_two)
      (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (i32.const 5)))
  (func (export "release") (param i32 i32 i32 i32 i32)
    (call_indirect $driver (type $of_two)
      (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (i32.const 6)))
  (func (export "set-once") (param i32 i32 i32 i32 i32)
    (call_indirect $driver (type $of_two)
      (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (i32.const 7)))

  ;; The core of the world `plain` exports no steps; the driver imports them.
  (func (export "babelqueue:guard/steps@0.1.0#once")
    (param i32 i32 i32 i32 i32 i64 i32 i32) (result i32) (unreachable))
  (func (export "cabi_post_babelqueue:guard/steps@0.1.0#once") (param i32) (unreachable)))
