! The Fortran module against the library and against C's layout. Prints what is wrong; the exit status counts it.
program module_test
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use quern
  implicit none

  interface
    integer(c_size_t) function layout_size(which) bind(c)
      import
      integer(c_int), value :: which
    end function
    subroutine layout_fill(info, report, quality) bind(c)
      import
      type(quern_stream_info), intent(out) :: info
      type(quern_report), intent(out) :: report
      type(quern_quality), intent(out) :: quality
    end subroutine
    integer(c_int) function layout_desc_is_numbered(desc) bind(c)
      import
      type(quern_context_desc), intent(in) :: desc
    end function
    integer(c_int) function layout_desc_has_user(desc, user) bind(c)
      import
      type(quern_context_desc), intent(in) :: desc
      type(c_ptr), value :: user
    end function
  end interface

  type point
    real(real64) :: x, y, z
  end type

  type(c_ptr) :: context, lossless
  integer :: failures = 0

  call check(quern_context_create(context=context) == QUERN_OK, 'a context')
  call check(quern_params_create(lossless) == QUERN_OK, 'parameters')
  call structs_are_those_of_c()
  call library_tells_of_itself()
  call column_major_arrays_are_not_copied()
  call sections_keep_their_strides()
  call every_type_and_rank_comes_back()
  call boxes_are_in_fortrans_order()
  call levels_are_every_second_place()
  call plans_serve_many_arrays()
  call parameters_and_metadata()
  call quality_is_measured()
  call failures_say_what_is_wrong()
  call quern_params_destroy(lossless)
  call quern_context_destroy(context)
  if (failures /= 0) then
    print '(i0, a)', failures, ' failures'
    error stop 1
  end if
  print '(a)', 'all of the Fortran module is as it should be'

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(2a)', 'FAILED: ', what
    failures = failures + 1
  end subroutine

  ! The stream of an array without loss, and the array that `back` describes filled from it.
  subroutine there_and_back(field, back, what)
    type(quern_array), intent(in) :: field
    type(quern_array), intent(inout) :: back
    character(*), intent(in) :: what
    integer(int8), allocatable :: stream(:)
    integer(int64) :: room, size
    call check(quern_compress_bound(field, lossless, room) == QUERN_OK, what // ': bound')
    allocate(stream(room))
    call check(quern_compress(context, lossless, field, stream, room, size) == QUERN_OK, what // ': compress')
    call check(quern_decompress(context, stream, size, back) == QUERN_OK, what // ': decompress')
    call check(quern_verify(context, field, stream, size) == QUERN_OK, what // ': verify')
  end subroutine

  subroutine structs_are_those_of_c()
    type(quern_context_desc) :: desc
    type(quern_codec_info) :: codec
    type(quern_array) :: array
    type(quern_report) :: report
    type(quern_stream_info) :: info
    type(quern_verdict) :: verdict
    type(quern_quality) :: quality
    integer, target :: anything
    integer :: i
    integer(c_size_t) :: sizes(7)
    sizes = [c_sizeof(desc), c_sizeof(codec), c_sizeof(array), c_sizeof(report), c_sizeof(info), c_sizeof(verdict), &
             c_sizeof(quality)]
    do i = 1, 7
      call check(layout_size(i) == sizes(i), 'size of a struct')
    end do
    call check(all([desc%struct_size, codec%struct_size, array%struct_size, report%struct_size, info%struct_size, &
                    verdict%struct_size, quality%struct_size] == sizes), 'struct_size of a struct')
    desc%runner%width = 2
    desc%threads = 3
    desc%memory_limit = 4
    call check(layout_desc_is_numbered(desc) == 1, 'members of quern_context_desc')
    desc%allocator%user = c_loc(anything)
    call check(layout_desc_has_user(desc, c_loc(anything)) == 1, 'members of quern_allocator')
    call layout_fill(info, report, quality)
    call check(info%dtype == 1 .and. info%rank == 2 .and. info%codec_id == 3 .and. info%codec_version == 4 .and. &
               all(info%extents == [5, 6, 7, 8, 9, 10, 11, 12]) .and. info%requested_kind == 13 .and. &
               info%enforced_kind == 14 .and. info%requested_value == 15 .and. info%enforced_value == 16, &
               'members of quern_stream_info')
    call check(info%header_bytes == 17 .and. info%chunks == 18 .and. info%metadata_bytes == 19 .and. info%fills == 20 &
               .and. info%format_major == 21 .and. info%format_minor == 22 .and. info%reserved == 23, &
               'further members of quern_stream_info')
    call check(report%enforced_kind == 1 .and. report%enforced_value == 2 .and. report%input_bytes == 3 .and. &
               report%output_bytes == 4 .and. report%masked_elements == 5 .and. report%chunks == 6 .and. &
               report%raw_chunks == 7 .and. report%psnr_db == 8 .and. report%ran_on == 9 .and. &
               report%codec_id == 10 .and. report%codec_reason == 11, 'members of quern_report')
    call check(quality%elements == 2 .and. quality%valid == 3 .and. quality%specials_lost == 4 .and. quality%min == 5 &
               .and. quality%max == 6 .and. quality%max_error == 7 .and. quality%max_pointwise_rel == 8 .and. &
               quality%mse == 9 .and. quality%psnr_db == 10 .and. quality%nrmse == 11 .and. quality%ssim == 12 .and. &
               quality%max_ulp == 13, 'members of quern_quality')
  end subroutine

  subroutine library_tells_of_itself()
    type(quern_codec_info) :: codec
    integer(c_size_t) :: i
    logical :: found
    call check(quern_version_string() == '0.1.0' .or. quern_version() /= 100, 'version')
    call check(index(quern_build_info(), 'quern') == 1, 'build information')
    call check(quern_abi_version() >= 1, 'ABI version')
    call check(quern_status_name(QUERN_ERROR_CHECKSUM_MISMATCH) == 'checksum_mismatch', 'name of a status')
    found = .false.
    do i = 1, quern_codec_count()
      call check(quern_codec_get(i - 1, codec) == QUERN_OK, 'a codec')
      found = found .or. quern_text(codec%name) == 'lorenzo'
    end do
    call check(found, 'lorenzo is among the codecs')
  end subroutine

  ! Compresses under a memory limit of `bytes`.
  integer(c_int32_t) function status_within(bytes, field, stream, text) result(status)
    integer(int64), intent(in) :: bytes
    type(quern_array), intent(in) :: field
    integer(int8), intent(inout) :: stream(:)
    character(:), allocatable, intent(out) :: text
    type(quern_context_desc) :: desc
    type(c_ptr) :: tight
    integer(int64) :: size
    desc%memory_limit = bytes
    call check(quern_context_create(desc, tight) == QUERN_OK, 'a context with a limit')
    status = quern_compress(tight, lossless, field, stream, ubound(stream, 1, int64), size)
    text = quern_last_error(tight)
    call quern_context_destroy(tight)
  end function

  ! 60 x 50 x 40 here is 40 x 50 x 60, slowest axis first, in the stream. The smallest memory limit under which the
  ! array can be compressed is not enough for the same array reversed, which has to be packed first.
  subroutine column_major_arrays_are_not_copied()
    real(real64), allocatable, target :: values(:, :, :)
    type(quern_stream_info) :: info
    type(quern_array) :: field
    integer(int8), allocatable :: stream(:)
    character(:), allocatable :: text
    integer(int64) :: room, size, enough, too_little, middle
    allocate(values(60, 50, 40))
    call random_number(values)
    field = quern_array(values)
    call check(all(field%extents(:3) == [40, 50, 60]), 'extents turned round')
    call check(c_associated(field%data, c_loc(values)), 'the array itself')
    call check(quern_compress_bound(field, lossless, room) == QUERN_OK, 'room')
    allocate(stream(room))
    call check(quern_compress(context, lossless, field, stream, room, size) == QUERN_OK, 'compress')
    call check(quern_inspect(stream, size, info) == QUERN_OK, 'inspect')
    call check(all(quern_shape(info) == [60, 50, 40]), 'shape of the stream')

    too_little = 1
    enough = 2_int64**32
    do while (enough - too_little > 10000)
      middle = too_little + (enough - too_little) / 2
      if (status_within(middle, field, stream, text) == QUERN_OK) then
        enough = middle
      else
        too_little = middle
      end if
    end do
    call check(status_within(enough, field, stream, text) == QUERN_OK, 'compress within a limit')
    field = quern_array(values(:, 50:1:-1, :))
    call check(status_within(enough, field, stream, text) == QUERN_ERROR_MEMORY_LIMIT, &
               'a reversed section needs a copy')
    call check(index(text, 'limit') > 0, 'and says so')
  end subroutine

  subroutine sections_keep_their_strides()
    real(real64), target :: values(-2:9, 3:12, 7), untouched(12, 10, 7)
    real(real64), target :: twin(12, 10, 7)
    type(point), target :: points(8, 9), back(8, 9)
    real(real64), pointer :: y(:, :), z(:, :)
    type(quern_array) :: result
    integer :: i, j
    call random_number(values)
    twin = -1
    result = quern_array(twin(2:12:3, 10:1:-2, 4:6))
    call there_and_back(quern_array(values(-1:9:3, 12:3:-2, 4:6)), result, 'section of rank 3')
    untouched = -1
    untouched(2:12:3, 10:1:-2, 4:6) = values(-1:9:3, 12:3:-2, 4:6)
    call check(all(twin == untouched), 'a section is written where it is, and nowhere else')

    result = quern_array(twin(:, 2, :))
    call there_and_back(quern_array(values(:, 5, :)), result, 'plane across the middle axis')
    call check(all(twin(:, 2, :) == values(:, 5, :)), 'plane')

    do j = 1, 9
      do i = 1, 8
        points(i, j) = point(i, 100 * i + j, j)
        back(i, j) = point(0, 0, 0)
      end do
    end do
    y => points%y
    z => back%z
    result = quern_array(z)
    call there_and_back(quern_array(y), result, 'component of a derived type')
    call check(all(back%z == points%y) .and. all(back%x == 0) .and. all(back%y == 0), 'a component through a pointer')
  end subroutine

  subroutine every_type_and_rank_comes_back()
    real(real32), target :: a1(7), b1(7)
    real(real64), target :: a2(3, 5), b2(3, 5)
    integer(int8), target :: a3(3, 4, 2), b3(3, 4, 2)
    integer(int16), target :: a4(2, 3, 4, 2), b4(2, 3, 4, 2)
    integer(int32), target :: a5(2, 3, 1, 4, 2), b5(2, 3, 1, 4, 2)
    integer(int64), target :: a6(2, 3, 2, 1, 2, 2), b6(2, 3, 2, 1, 2, 2)
    real(real32), target :: a7(2, 1, 2, 3, 2, 1, 2), b7(2, 1, 2, 3, 2, 1, 2)
    real(real64), target :: a8(2, 1, 2, 1, 2, 3, 2, 2), b8(2, 1, 2, 1, 2, 3, 2, 2)
    real(real32), target :: none(3, 0, 2), none_back(3, 0, 2)
    real(real64), target :: one(1, 1), one_back(1, 1)
    type(quern_array) :: back
    integer :: i
    a1 = [(i * 1.5_real32, i=1, 7)]
    a2 = reshape([(i * 2.5_real64, i=1, 15)], shape(a2))
    a3 = reshape([(int(i - 12, int8), i=1, 24)], shape(a3))
    a4 = reshape([(int(-300 * i, int16), i=1, 48)], shape(a4))
    a5 = reshape([(i * 70000, i=1, 48)], shape(a5))
    a6 = reshape([(i * 5000000000_int64, i=1, 48)], shape(a6))
    a7 = reshape([(i * 0.5_real32, i=1, 48)], shape(a7))
    a8 = reshape([(i * 0.25_real64, i=1, 96)], shape(a8))
    one = 42
    back = quern_array(b1); call there_and_back(quern_array(a1), back, 'rank 1')
    back = quern_array(b2); call there_and_back(quern_array(a2), back, 'rank 2')
    back = quern_array(b3); call there_and_back(quern_array(a3), back, 'rank 3')
    back = quern_array(b4); call there_and_back(quern_array(a4), back, 'rank 4')
    back = quern_array(b5); call there_and_back(quern_array(a5), back, 'rank 5')
    back = quern_array(b6); call there_and_back(quern_array(a6), back, 'rank 6')
    back = quern_array(b7); call there_and_back(quern_array(a7), back, 'rank 7')
    back = quern_array(b8); call there_and_back(quern_array(a8), back, 'rank 8')
    back = quern_array(one_back); call there_and_back(quern_array(one), back, 'one element')
    back = quern_array(none_back); call there_and_back(quern_array(none), back, 'no element')
    call check(all(b1 == a1) .and. all(b2 == a2) .and. all(b3 == a3) .and. all(b4 == a4), 'values of rank 1 to 4')
    call check(all(b5 == a5) .and. all(b6 == a6) .and. all(b7 == a7) .and. all(b8 == a8), 'values of rank 5 to 8')
    call check(one_back(1, 1) == 42, 'value of one element')
  end subroutine

  subroutine boxes_are_in_fortrans_order()
    integer(int32), target :: values(20, 30, 10), box(3, 4, 2)
    type(quern_array) :: field, result
    integer(int8), allocatable :: stream(:)
    integer(int64) :: room, size
    integer :: i
    values = reshape([(7 * i, i=1, 6000)], shape(values))
    field = quern_array(values)
    call check(quern_compress_bound(field, lossless, room) == QUERN_OK, 'room')
    allocate(stream(room))
    call check(quern_compress(context, lossless, field, stream, room, size) == QUERN_OK, 'compress')
    result = quern_array(box)
    call check(quern_decompress_region(context, stream, size, [5_int64, 11_int64, 9_int64], &
                                       [7_int64, 14_int64, 10_int64], result) == QUERN_OK, 'decode a box')
    call check(all(box == values(5:7, 11:14, 9:10)), 'the box is values(5:7, 11:14, 9:10)')
    call check(quern_decompress_region(context, stream, size, [5_int64, 11_int64], [7_int64, 14_int64], result) == &
               QUERN_ERROR_INVALID_SHAPE, 'corners of another rank')
    call check(quern_decompress_region(context, stream, size, [5_int64, 11_int64, 10_int64], &
                                       [7_int64, 14_int64, 11_int64], result) /= QUERN_OK, 'a box outside')
  end subroutine

  subroutine levels_are_every_second_place()
    real(real32), target :: values(31, 40, 50), whole(31, 40, 50)
    real(real32), allocatable, target :: level(:, :, :)
    type(quern_array) :: field, result
    type(c_ptr) :: params
    integer(int8), allocatable :: stream(:)
    integer(int64) :: room, size
    integer(int64), allocatable :: extents(:)
    integer(int32) :: levels
    integer :: i
    values = reshape([(sin(0.01 * i), i=1, 62000)], shape(values))
    field = quern_array(values)
    call check(quern_params_create(params) == QUERN_OK, 'parameters')
    call check(quern_params_parse(params, 'abs=1e-3 codec=stencil layout=levels') == QUERN_OK, 'a layout with levels')
    call check(quern_compress_bound(field, params, room) == QUERN_OK, 'room')
    allocate(stream(room))
    call check(quern_compress(context, params, field, stream, room, size) == QUERN_OK, 'compress')
    result = quern_array(whole)
    call check(quern_decompress(context, stream, size, result) == QUERN_OK, 'decode everything')
    call check(quern_level_extents(context, stream, size, 1_int32, levels, extents) == QUERN_OK, 'extents of a level')
    call check(levels == 6 .and. all(extents == [16, 20, 25]), 'levels and the extents of the first')
    allocate(level(extents(1), extents(2), extents(3)))
    result = quern_array(level)
    call check(quern_decompress_level(context, stream, size, 1_int32, result) == QUERN_OK, 'decode a level')
    call check(all(level == whole(::2, ::2, ::2)), 'the level is values(::2, ::2, ::2)')
    call check(quern_level_extents(context, stream, size, 7_int32, levels, extents) == QUERN_ERROR_UNSUPPORTED, &
               'a level that is not there')
    call quern_params_destroy(params)
  end subroutine

  subroutine plans_serve_many_arrays()
    real(real32), target :: values(30, 20), back(30, 20)
    type(quern_array) :: field, result
    type(c_ptr) :: plan
    integer(int8), allocatable, target :: stream(:)
    integer(int64), target :: size
    integer(int64) :: room, workspace
    integer :: i
    field = quern_array(values)
    result = quern_array(back)
    call check(quern_plan_create(context, lossless, field, plan) == QUERN_OK, 'a plan')
    call check(quern_plan_bound(plan, room) == QUERN_OK, 'bound of the plan')
    call check(quern_plan_workspace(plan, workspace) == QUERN_OK .and. workspace == 0, 'workspace of the plan')
    allocate(stream(room))
    do i = 1, 3
      call random_number(values)
      call check(quern_compress_async(context, plan, field, c_null_ptr, 0_int64, c_loc(stream), room, c_loc(size), &
                                      c_null_ptr) == QUERN_OK, 'compress with the plan')
      call check(quern_decompress_async(context, c_loc(stream), size, result, c_null_ptr, 0_int64, c_null_ptr) == &
                 QUERN_OK, 'decompress')
      call check(all(back == values), 'values of the plan')
    end do
    call quern_plan_destroy(plan)
    call check(quern_params_create_with_allocator(params=plan) == QUERN_OK, 'parameters with malloc')
    call quern_params_destroy(plan)
  end subroutine

  subroutine parameters_and_metadata()
    type(c_ptr) :: params
    character(:), allocatable :: text
    call check(quern_params_create(params) == QUERN_OK, 'parameters')
    call check(quern_params_parse(params, 'rel=0.5 codec=lorenzo') == QUERN_OK, 'parse')
    call check(quern_params_get(params, 'codec', text) == QUERN_OK, 'get')
    call check(text == 'lorenzo', 'value of codec')
    call check(quern_params_set(params, 'goal', 'speed') == QUERN_OK, 'set')
    call check(quern_params_set_bound(params, QUERN_BOUND_ABS, 0.25_c_double) == QUERN_OK, 'set a bound')
    call check(quern_params_get(params, 'bound', text) == QUERN_OK, 'get the bound')
    call check(text == 'abs=0.25', 'value of the bound')
    call check(quern_params_set_metadata(params, [1_int8, 2_int8], 2_c_size_t) == QUERN_OK, 'metadata')
    call check(quern_params_get(params, 'nothing', text) == QUERN_ERROR_UNKNOWN_SETTING, 'a key that is not set')
    call quern_params_destroy(params)
  end subroutine

  subroutine quality_is_measured()
    real(real32), target :: values(100), other(100)
    real(real32), target :: fill
    type(quern_array) :: a, b
    type(quern_quality) :: quality
    type(c_ptr) :: params
    integer :: i
    values = [(real(i, real32), i=1, 100)]
    other = values
    other(50) = 50.5
    values(10) = -999
    other(10) = -999
    fill = -999
    a = quern_array(values)
    b = quern_array(other)
    call check(quern_compare(context, a, b, quality) == QUERN_OK, 'compare')
    call check(quality%max_error == 0.5 .and. quality%min == -999, 'error and smallest value')
    call check(quern_params_create(params) == QUERN_OK, 'parameters')
    call check(quern_params_add_fill(params, QUERN_F32, c_loc(fill)) == QUERN_OK, 'a fill value')
    call check(quern_compare(context, a, b, quality, params) == QUERN_OK, 'compare with a fill value')
    call check(quality%valid == 99 .and. quality%min == 1, 'without fill values')
    call quern_params_destroy(params)
  end subroutine

  subroutine failures_say_what_is_wrong()
    real(real32), target :: values(50)
    integer(int8), allocatable :: stream(:)
    type(quern_array) :: field
    type(quern_verdict) :: verdict
    type(c_ptr) :: params
    integer(int64) :: size, room
    call random_number(values)
    field = quern_array(values)
    call check(quern_params_create(params) == QUERN_OK, 'parameters')
    call check(quern_params_parse(params, 'abs=-3') == QUERN_ERROR_INVALID_BOUND, 'a negative bound')
    call check(len(quern_last_error()) > 0, 'a reason without a context')
    call check(quern_params_parse(params, 'abs=0.01') == QUERN_OK, 'a bound')
    call check(quern_compress_bound(field, params, room) == QUERN_OK, 'room')
    allocate(stream(room))
    call check(quern_compress(context, params, field, stream, 10_int64, size) == QUERN_ERROR_DESTINATION_TOO_SMALL, &
               'too little room')
    call check(len(quern_last_error(context)) > 0, 'a reason on the context')
    call check(quern_compress(context, params, field, stream, room, size) == QUERN_OK, 'compress')
    values(31) = values(31) + 5
    call check(quern_verify(context, field, stream, size, verdict) == QUERN_ERROR_BOUND_NOT_MET, 'a changed value')
    call check(verdict%violations == 1 .and. verdict%first_index == 30, 'where it is, from 0')
    stream(size / 2) = ieor(stream(size / 2), 1_int8)
    call check(quern_decompress(context, stream, size, field) == QUERN_ERROR_CHECKSUM_MISMATCH, 'a flipped bit')
    call quern_params_destroy(params)
  end subroutine
end program
