! Compresses a column-major field as it lies in memory, brings it back, has every value checked, and decodes a plane
! alone.
!   gfortran $(pkg-config --variable=fortrandir quern)/quern.f90 roundtrip.f90 $(pkg-config --libs quern)
program roundtrip
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int64, real32
  use quern
  implicit none

  real(real32), allocatable, target :: values(:, :, :), back(:, :, :), plane(:, :, :)
  integer(int8), allocatable :: stream(:)
  type(c_ptr) :: context, params
  type(quern_array) :: field, result
  type(quern_verdict) :: verdict
  integer(int64) :: room, size
  integer :: i, j, k

  allocate(values(64, 48, 32), back(64, 48, 32), plane(64, 48, 1))
  do k = 1, 32
    do j = 1, 48
      do i = 1, 64
        values(i, j, k) = 280 + 10 * sin(0.11 * i) * cos(0.07 * j) + 0.5 * sin(0.3 * k)
      end do
    end do
  end do

  call must(quern_context_create(context=context))
  call must(quern_params_create(params))
  call must(quern_params_parse(params, 'abs=1e-3'))

  field = quern_array(values)
  call must(quern_compress_bound(field, params, room))
  allocate(stream(room))
  call must(quern_compress(context, params, field, stream, room, size), context)

  result = quern_array(back)
  call must(quern_decompress(context, stream, size, result), context)
  call must(quern_verify(context, field, stream, size, verdict), context)

  result = quern_array(plane)
  call must(quern_decompress_region(context, stream, size, [1_int64, 1_int64, 7_int64], &
    [64_int64, 48_int64, 7_int64], result), context)

  print '(3a, i0, a, i0, a, es9.2)', 'quern ', quern_version_string(), ': ', storage_size(values) / 8 * 64 * 48 * 32, &
    ' bytes in ', size, ', largest error ', maxval(abs(real(values, c_double) - back))
  if (maxval(abs(real(values, c_double) - back)) > 1e-3_c_double .or. verdict%violations /= 0) error stop 'bound missed'
  if (any(plane /= back(:, :, 7:7))) error stop 'the plane is not the same'
  deallocate(stream, values, back, plane)
  call quern_params_destroy(params)
  call quern_context_destroy(context)

contains

  subroutine must(status, context)
    integer(c_int32_t), intent(in) :: status
    type(c_ptr), intent(in), optional :: context
    if (status == QUERN_OK) return
    write (error_unit, '(3a)') quern_status_name(status), ': ', quern_last_error(context)
    error stop 1
  end subroutine
end program
